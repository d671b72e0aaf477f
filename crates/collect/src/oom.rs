// SPDX-License-Identifier: Apache-2.0
//! Whom the kernel ends where memory runs out: whoever observes, before anybody who is observed.

use std::fs;

/// The file of this process, and its highest value: of all processes that are not protected, it is the first.
const OF_THIS_PROCESS: &str = "/proc/self/oom_score_adj";
const FIRST: &str = "1000";

/// Makes this process the first to be ended. Not for one that has started a command, which ends with it.
pub fn be_the_first() {
    // Anybody may do so. Where it is refused all the same, the kernel chooses by size, and this process is a small one.
    let _ = fs::write(OF_THIS_PROCESS, FIRST);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anybody_may() {
        let own = fs::read_to_string(OF_THIS_PROCESS).unwrap();
        be_the_first();
        assert_eq!(fs::read_to_string(OF_THIS_PROCESS).unwrap().trim(), FIRST);
        // Whoever runs after this in the same process is no observer.
        fs::write(OF_THIS_PROCESS, own).unwrap();
    }
}
