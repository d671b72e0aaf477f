// SPDX-License-Identifier: Apache-2.0
//! Threads that were seen to take something from others or to give it to them: in a sample, in a counted call, or in a
//! wait. One that was in no such call computes by itself; whoever asks the service, it is not the one that answers.

use std::collections::BTreeSet;

use super::calls::Calls;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::syscall::Family;

/// The threads.
pub struct Serving(BTreeSet<(u32, u32)>);

impl Fact for Serving {
    fn compute(case: &Case) -> Result<Self, Gap> {
        Ok(Serving(case.fact::<Calls>()?.threads_in(case, is_traffic)))
    }
}

impl Serving {
    /// Whether a thread takes part in the service's traffic, as far as was seen.
    pub fn has(&self, thread: (u32, u32)) -> bool {
        self.0.contains(&thread)
    }

    /// Whether it does not, and others do.
    pub fn is_aside(&self, thread: (u32, u32)) -> bool {
        !self.has(thread) && self.others(thread)
    }

    /// Whether any other thread does.
    pub fn others(&self, than: (u32, u32)) -> bool {
        self.0.iter().any(|thread| *thread != than)
    }
}

fn is_traffic(family: Family) -> bool {
    matches!(family, Family::Poll | Family::Receive | Family::Accept | Family::Send)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn whoever_reads_serves_and_whoever_computes_does_not() {
        let recording = parse(
            "meta host.arch=x86_64
             wait pid=1 tid=1 syscall=0 fd_kind=socket total_ns=9
             sample pid=1 tid=2 kernel=true syscall=44
             wait pid=1 tid=3 syscall=202 total_ns=9
             sample pid=1 tid=3 syscall=-1
             wait pid=1 tid=4 syscall=17 fd_kind=file total_ns=9
             sample pid=1 tid=4 kernel=true syscall=17",
        )
        .unwrap();
        let serving = Case::new(&recording).fact::<Serving>().unwrap();
        assert_eq!([1, 2, 3, 4].map(|tid| serving.has((1, tid))), [true, true, false, false], "4 reads files");
        assert!(serving.others((1, 3)));
    }
}
