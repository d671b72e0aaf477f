// SPDX-License-Identifier: Apache-2.0
//! The whole host: which processes lose most time.
//!
//! Lost is time on a CPU, time runnable without one, throttled time, and time blocked on the disk
//! or on page faults. Other blocks are not counted: an idle server sits in them all day.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables;

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::Threads;

/// One process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loser {
    /// Process id; 0 = short-lived ones of this name together.
    pub pid: u32,
    /// Command name.
    pub comm: String,
    /// On a CPU, ns.
    pub cpu_ns: f64,
    /// Runnable, not running, ns.
    pub waiting_for_cpu_ns: f64,
    /// Held by a quota, ns.
    pub throttled_ns: f64,
    /// Blocked on the disk or on page faults, ns.
    pub disk_ns: f64,
    /// Blocked on whatever it may be, most of it idle, ns; not counted as lost.
    pub blocked_ns: f64,
}

impl Loser {
    /// Whether it is the threads of the kernel together, which work for others.
    pub fn is_kernel(&self) -> bool {
        self.pid == 0 && self.comm == KERNEL
    }

    /// All of it.
    pub fn lost_ns(&self) -> f64 {
        self.cpu_ns + self.waiting_for_cpu_ns + self.throttled_ns + self.disk_ns
    }
}

/// Processes by lost time, most first.
pub struct HostRank {
    /// The processes; those that lost nothing are left out.
    pub processes: Vec<Loser>,
}

impl Fact for HostRank {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let threads = case.fact::<Threads>()?;
        let rows = case.recording.rows::<tables::Process>();
        let names: BTreeMap<u32, &str> = rows.iter().map(|p| (p.pid, p.comm.as_str())).collect();
        let kernel: BTreeSet<u32> = rows.iter().filter(|p| is_kernel_thread(p)).map(|p| p.pid).collect();
        let mut all: BTreeMap<(u32, String), Loser> = BTreeMap::new();
        for t in &threads.threads {
            // Threads of one process have names of their own; the process has one.
            let (pid, comm) = match t.pid {
                0 => (0, t.comm.as_str()),
                pid if kernel.contains(&pid) => (0, KERNEL),
                pid => (pid, names.get(&pid).copied().unwrap_or("")),
            };
            let p = all.entry((pid, comm.to_string())).or_default();
            p.pid = pid;
            if p.comm.is_empty() || t.tid == t.pid {
                p.comm = if comm.is_empty() { t.comm.clone() } else { comm.to_string() };
            }
            p.cpu_ns += t.lines.cpu_ns;
            p.waiting_for_cpu_ns += t.lines.waiting_for_cpu_ns();
            p.throttled_ns += t.lines.throttled_ns;
            p.blocked_ns += t.lines.blocked_ns.values().sum::<f64>();
            p.disk_ns += t.lines.blocked(Blocked::Disk) + t.lines.blocked(Blocked::PageFault);
        }
        let mut processes: Vec<Loser> = all.into_values().filter(|p| p.lost_ns() > 0.0).collect();
        processes.sort_by(|a, b| b.lost_ns().total_cmp(&a.lost_ns()).then(a.pid.cmp(&b.pid)));
        Ok(HostRank { processes })
    }
}

/// Name of the row that all threads of the kernel share.
const KERNEL: &str = "kernel threads";

/// Process 2 is the kernel's own parent of all its threads.
fn is_kernel_thread(p: &tables::Process) -> bool {
    p.exe.is_empty() && (p.ppid == 2 || p.pid == 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn ranked_by_lost_time_not_by_sleep() {
        let recording = parse(
            "meta host.arch=x86_64 kind=host
             process pid=5 comm=java
             thread pid=5 tid=5 comm=java wall_ns=100 blocked_ns=100
             thread pid=5 tid=6 comm=\"GC Thread\" wall_ns=100 cpu_ns=10 throttled_ns=5 blocked_ns=85
             thread pid=7 tid=7 comm=dd wall_ns=100 cpu_ns=5 blocked_ns=60
             thread comm=\"it's\" wall_ns=9 run_queue_ns=9
             process pid=14 ppid=2 comm=ksoftirqd/0
             process pid=15 ppid=2 comm=rcu_preempt
             thread pid=14 comm=ksoftirqd/0 wall_ns=100 cpu_ns=3
             thread pid=15 comm=rcu_preempt wall_ns=100 cpu_ns=4
             thread pid=8 tid=8 comm=idle wall_ns=100 blocked_ns=100
             wait pid=7 tid=7 syscall=0 fd_kind=file state=2 io_wait=true total_ns=60",
        )
        .unwrap();
        let rank = Case::new(&recording).fact::<HostRank>().unwrap();
        let seen: Vec<(u32, &str, f64)> =
            rank.processes.iter().map(|p| (p.pid, p.comm.as_str(), p.lost_ns())).collect();
        assert_eq!(seen, [(7, "dd", 65.0), (5, "java", 15.0), (0, "it's", 9.0), (0, "kernel threads", 7.0)]);
        assert!(rank.processes[3].is_kernel() && !rank.processes[2].is_kernel());
    }
}
