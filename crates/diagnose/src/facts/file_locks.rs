// SPDX-License-Identifier: Apache-2.0
//! Locks on files that the target stood before: which files, who held them, and what the holders did meanwhile. Processes
//! that take connections one at a time and stand before one such lock look like too few workers; more of them would only
//! stand before it too.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::Wakeup;

use super::stacks::Stacks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::blocked::{Blocked, of_wakeup};
use crate::ledger::threads::Threads;
use crate::statistics::share;
use crate::walk::chains::Chain;
use crate::walk::{LOCK, Walk};

/// Waits for the lock on one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Locked {
    /// Name of the file; empty = unknown.
    pub path: String,
    /// The call in which it is waited for.
    pub call: String,
    /// Time, ns, of the waits that were picked and those that they stand for.
    pub ns: f64,
    /// Threads that stood before it.
    pub waiters: usize,
    /// Who gave it up, as `php-fpm/812`, by the time of those who waited, ns, most first.
    pub holders: Vec<(String, f64)>,
    /// What the holder did meanwhile, as the walk tells; none = unknown.
    pub chain: Option<Chain>,
}

/// All of them, those with most time first.
#[derive(Clone, Debug, Default)]
pub struct FileLocks {
    /// Time of all such waits, exactly as the ledger's line `blocked_file_lock`, ns.
    pub ns: f64,
    /// Share of it in the time of the threads that stood before one. More of them would stand there too.
    pub of_waiters: f64,
    /// By file.
    pub files: Vec<Locked>,
}

/// Sums over one file.
#[derive(Default)]
struct Sums {
    call: String,
    ns: f64,
    waiters: BTreeSet<u32>,
    holders: BTreeMap<String, f64>,
}

impl Fact for FileLocks {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let (ledger, stacks) = (case.fact::<Threads>()?, case.fact::<Stacks>()?);
        let walk = case.fact::<Walk>();
        let of_target = |row: &&Wakeup| walk.as_ref().is_ok_and(|walk| walk.target.contains(&row.pid));
        let mut files: BTreeMap<String, Sums> = BTreeMap::new();
        for row in case.recording.rows::<Wakeup>().iter().filter(of_target) {
            if of_wakeup(case, &stacks, row) != Blocked::FileLock {
                continue;
            }
            let sums = files.entry(row.path.clone()).or_default();
            let ns = row.blocked_ns.max(row.wait_ns) as f64;
            sums.ns += ns;
            sums.call = case.syscall(row.syscall);
            sums.waiters.insert(row.tid);
            if row.context == "thread" {
                *sums.holders.entry(format!("{}/{}", row.waker_comm, row.waker_pid)).or_default() += ns;
            }
        }
        let chains = walk.map_or_else(|_| Vec::new(), |walk| walk.chains.clone());
        let mut files: Vec<Locked> = files.into_iter().map(|(path, sums)| sums.told(path, &chains)).collect();
        files.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        let waiting = ledger.threads.iter().filter(|t| t.lines.blocked(Blocked::FileLock) > 0.0);
        let ns = ledger.total.blocked(Blocked::FileLock);
        Ok(Self { ns, of_waiters: share(ns, waiting.map(|t| t.lines.wall_ns).sum()), files })
    }
}

impl Sums {
    fn told(self, path: String, chains: &[Chain]) -> Locked {
        let mut holders: Vec<(String, f64)> = self.holders.into_iter().collect();
        holders.sort_by(|a, b| b.1.total_cmp(&a.1));
        let is_this = |c: &&Chain| {
            let who = &c.links[0].who;
            who.fd_kind == LOCK && who.path == path && who.call == self.call
        };
        let chain = chains.iter().find(is_this).cloned();
        Locked { path, call: self.call, ns: self.ns, waiters: self.waiters.len(), holders, chain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    const TEXT: &str = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1,2]
        frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
        stack id=1 frames=[1]
        thread pid=1 tid=1 comm=php wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
        thread pid=2 tid=2 comm=php wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
        wait pid=1 tid=1 syscall=73 fd_kind=file file_system=61267 state=1 count=9 total_ns=8e8
        wait pid=2 tid=2 syscall=230 state=1 count=9 total_ns=9e8
        wakeup t_ns=900e6 pid=1 tid=1 comm=php wait_ns=20e6 blocked_ns=800e6 syscall=73 fd_kind=file state=1 path=/tmp/sess context=thread waker_pid=2 waker_tid=2 waker_comm=php waker_syscall=3
        wakeup t_ns=899e6 pid=2 tid=2 comm=php wait_ns=19e6 blocked_ns=800e6 syscall=230 state=1 context=interrupt waker_stack=1";

    #[test]
    fn the_file_its_holder_and_what_that_did() {
        let recording = parse(TEXT).unwrap();
        let locks = Case::new(&recording).fact::<FileLocks>().unwrap();
        assert_eq!((locks.ns, locks.files.len(), locks.files[0].waiters), (8e8, 1, 1));
        let locked = &locks.files[0];
        assert_eq!((locked.path.as_str(), locked.call.as_str()), ("/tmp/sess", "flock"));
        assert_eq!(locked.chain.as_ref().unwrap().links[1].who.call, "clock_nanosleep");
        assert!((locks.of_waiters - 0.8).abs() < 1e-9, "{}", locks.of_waiters);
    }

    #[test]
    fn none_where_nobody_stands_before_one() {
        let recording = parse("thread pid=1 tid=1 wall_ns=1e9 blocked_ns=1e9").unwrap();
        let locks = Case::new(&recording).fact::<FileLocks>().unwrap();
        assert!(locks.ns == 0.0 && locks.of_waiters == 0.0);
    }
}
