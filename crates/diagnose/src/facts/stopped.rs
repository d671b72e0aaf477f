// SPDX-License-Identifier: Apache-2.0
//! Time in which the target was kept from running at all: stopped by a signal, traced, or frozen; and by whom, as far as
//! that is known.

use std::collections::{BTreeMap, BTreeSet};

use recording::counters::{cgroup_freezer, pid};
use recording::tables::{Neighbour, Wait, Wakeup};

use super::counters::Counters;
use super::stacks::Stacks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::blocked::{Blocked, FROZEN, STOPPED, TRACED, of_wait};
use crate::ledger::threads::Threads;
use crate::statistics::share;

/// How a thread was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// By a stop signal.
    Stopped,
    /// By a debugger or tracer (ptrace).
    Traced,
    /// By the freezer of its cgroup.
    Frozen,
}

/// Time in which the target was held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stopped {
    /// Thread time by how it was held, ns: the ledger's line `stopped`.
    pub ns: BTreeMap<How, f64>,
    /// Share of the threads' whole time.
    pub of_wall: f64,
    /// The process that was stopped by a signal for longest.
    pub most: Option<u32>,
    /// Share of the window in which a cgroup was found frozen, and which; it tells also of threads that were asleep already
    /// and were not woken for it, whose time stands on other lines.
    pub frozen: Option<(String, f64)>,
    /// Who let it go on, as `bash/812`, by how often that was seen, most first.
    pub continued_by: Vec<(String, u64)>,
    /// Who traces one of its processes, as `gdb/812`.
    pub tracers: Vec<String>,
}

impl Fact for Stopped {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let stacks = case.fact::<Stacks>()?;
        let mut stopped = Self::default();
        let mut by_signal: BTreeMap<u32, f64> = BTreeMap::new();
        for row in case.recording.rows::<Wait>().iter().filter(|r| of_wait(case, &stacks, r) == Blocked::Stopped) {
            *stopped.ns.entry(how(row.state)).or_default() += row.total_ns as f64;
            if how(row.state) == How::Stopped && row.pid != 0 {
                *by_signal.entry(row.pid).or_default() += row.total_ns as f64;
            }
        }
        stopped.most = by_signal.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(pid, _)| pid);
        let all: f64 = stopped.ns.values().sum();
        stopped.of_wall = case.fact::<Threads>().map_or(0.0, |ledger| share(all, ledger.total.wall_ns));
        stopped.continued_by = continued_by(case);
        if let Ok(counters) = case.fact::<Counters>() {
            stopped.frozen = frozen(case, &counters);
            stopped.tracers = tracers(case, &counters);
        }
        Ok(stopped)
    }
}

fn how(state: u32) -> How {
    match state {
        s if s & FROZEN != 0 => How::Frozen,
        s if s & TRACED != 0 => How::Traced,
        _ => How::Stopped,
    }
}

/// Who ended stops: a signal to go on is sent by somebody.
fn continued_by(case: &Case) -> Vec<(String, u64)> {
    let held = |row: &&Wakeup| row.state & (STOPPED | TRACED) != 0 && row.context == "thread";
    let mut names: BTreeMap<String, u64> = BTreeMap::new();
    for row in case.recording.rows::<Wakeup>().iter().filter(held) {
        *names.entry(format!("{}/{}", row.waker_comm, row.waker_pid)).or_default() += 1;
    }
    let mut names: Vec<(String, u64)> = names.into_iter().collect();
    names.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    names
}

/// The cgroup that was frozen for most of the window: by its own clock where the kernel keeps one, else as often as it was
/// found so.
fn frozen(case: &Case, counters: &Counters) -> Option<(String, f64)> {
    let part = |group: &str| {
        let found = counters.mean(cgroup_freezer::FROZEN, group, case.length_ns()).map_or(0.0, |mean| mean.value);
        counters.delta(cgroup_freezer::FROZEN_NS, group).map_or(found, |ns| share(ns, case.length_ns()))
    };
    let groups = counters.entities(cgroup_freezer::SOURCE).map(|group| (group.to_string(), part(group)));
    groups.filter(|(_, part)| *part > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
}

fn tracers(case: &Case, counters: &Counters) -> Vec<String> {
    let tracer = |process: &str| counters.max(pid::TRACER_PID, process).map(|pid| pid as u32);
    let neighbours = case.recording.rows::<Neighbour>();
    let comm = |pid: u32| neighbours.iter().rfind(|n| n.pid == pid).map_or("process", |n| n.comm.as_str());
    let found: BTreeSet<u32> = counters.entities(pid::SOURCE).filter_map(tracer).collect();
    found.into_iter().map(|pid| format!("{}/{pid}", comm(pid))).collect()
}

impl Stopped {
    /// All thread time in which it was held, ns.
    pub fn total_ns(&self) -> f64 {
        self.ns.values().sum()
    }

    /// Share of the target's time in which it was held, by the ledger or by what its cgroup says.
    pub fn share(&self) -> f64 {
        self.frozen.as_ref().map_or(0.0, |(_, part)| *part).max(self.of_wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn held_by_a_signal_for_two_thirds_of_its_time() {
        let text = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
            thread pid=1 tid=1 wall_ns=9e8 blocked_ns=9e8
            wait pid=1 tid=1 syscall=232 fd_kind=anon state=4 count=3 total_ns=6e8
            wait pid=1 tid=1 syscall=232 fd_kind=anon state=1 count=3 total_ns=3e8";
        let stopped = Case::new(&parse(text).unwrap()).fact::<Stopped>().unwrap();
        assert_eq!((stopped.total_ns(), stopped.most), (6e8, Some(1)));
        assert!((stopped.share() - 2.0 / 3.0).abs() < 1e-9 && stopped.ns.contains_key(&How::Stopped));
    }
}
