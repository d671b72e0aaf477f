// SPDX-License-Identifier: Apache-2.0
//! How many files this process may hold open. A capture holds programs, maps and clocks of each CPU, hundreds of binaries and
//! the memory of hundreds of processes; shells and service managers allow 1024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows as many as may be allowed at all. What this process has started before keeps its own limit, such as a command that
/// waits for the capture.
pub(crate) fn allow_most() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Where that is refused, the capture does with what it has: what cannot be opened is missing then, and said so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn of_this_process_alone() {
        let limit = getrlimit(Resource::Nofile);
        let most = limit.maximum.unwrap();
        setrlimit(Resource::Nofile, Rlimit { current: Some(most - 1), ..limit }).unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        allow_most();
        assert_eq!(getrlimit(Resource::Nofile).current, Some(most));
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
        let of_child = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(of_child.split_whitespace().next(), Some((most - 1).to_string().as_str()));
    }
}
