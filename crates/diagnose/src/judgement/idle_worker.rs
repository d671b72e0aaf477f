// SPDX-License-Identifier: Apache-2.0
//! A worker that has next to nothing to do beside one that is full: connections stay where they were accepted.

use std::collections::BTreeMap;

use recording::tables::Process;

use crate::case::Case;
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::{Lines, Threads};
use crate::statistics::share;

/// Of the window, in which it has or wants a CPU, at most.
const IDLE: f64 = 0.1;

/// Of its threads' time, waiting for clients, at least.
const FREE: f64 = 0.5;

/// Of the same program as `full`, listening where that one does, and started by it or by its parent: who starts the others minds them,
/// and is idle by design.
pub(crate) fn beside(case: &Case, full: u32) -> Option<(u32, String)> {
    let processes: BTreeMap<u32, &Process> =
        case.recording.rows::<Process>().iter().map(|row| (row.pid, row)).collect();
    let own = processes.get(&full).filter(|row| !row.listen.is_empty())?;
    let is_worker = |row: &&&Process| {
        let is_beside = row.ppid == own.pid || row.ppid == own.ppid && own.ppid > 1;
        row.pid != full && is_beside && row.comm == own.comm && row.listen.iter().any(|name| own.listen.contains(name))
    };
    let ledger = case.fact::<Threads>().ok()?;
    let is_idle = |row: &&&Process| {
        let threads = || ledger.threads.iter().filter(|thread| thread.pid == row.pid);
        let sum = |of: fn(&Lines) -> f64| threads().map(|thread| of(&thread.lines)).sum::<f64>();
        let free = sum(|lines| lines.blocked(Blocked::Poll) + lines.blocked(Blocked::Accept));
        share(sum(|lines| lines.demand_ns()), case.length_ns()) <= IDLE
            && share(free, sum(|lines| lines.wall_ns)) >= FREE
    };
    processes.values().filter(is_worker).find(is_idle).map(|row| (row.pid, row.comm.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// A full worker, and another process of which this is known.
    fn found(other: &str, cpu_ns: &str) -> Option<u32> {
        let text = format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1,2] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 ppid=900 comm=svc listen=[\"tcp 0.0.0.0:80\"]
             process pid=2 {other} listen=[\"tcp 0.0.0.0:80\"]
             thread t_ns=1e9 pid=1 tid=1 comm=svc wall_ns=1e9 cpu_ns=1e9
             thread t_ns=1e9 pid=2 tid=2 comm=svc wall_ns=1e9 cpu_ns={cpu_ns} blocked_ns=5e8
             wait t_ns=1e9 pid=2 tid=2 syscall=232 state=1 total_ns=5e8"
        );
        beside(&Case::new(&parse(&text).unwrap()), 1).map(|(pid, _)| pid)
    }

    #[test]
    fn a_worker_without_clients() {
        assert_eq!((found("ppid=900 comm=svc", "5e7"), found("ppid=1 comm=svc", "5e7")), (Some(2), Some(2)));
        assert_eq!(found("ppid=900 comm=svc", "4e8"), None, "it has work of its own");
        assert_eq!(found("ppid=900 comm=rotate", "5e7"), None, "a helper");
        assert_eq!(found("ppid=7 comm=svc", "5e7"), None, "another service");
    }
}
