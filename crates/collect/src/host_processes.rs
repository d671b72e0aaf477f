// SPDX-License-Identifier: Apache-2.0
//! Every process of the host, twice: what each of them ran and waited in between, without BPF.
//!
//! Times come from each thread's `schedstat` (CPU time and run delay, in ns), which the kernel brings up to date at
//! switches and ticks: they are exact to a tick. Threads that ended in between have taken their numbers
//! with them; the process's own tick count still has their CPU time, and so it is the lower bound.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cgroup::Membership;
use crate::clock::monotonic_ns;
use crate::proc::{Proc, is_dead, is_kernel_thread, text};

/// All processes of one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// CLOCK_MONOTONIC when the reading began, ns.
    pub at_ns: u64,
    /// By process id.
    pub processes: BTreeMap<u32, Seen>,
}

/// One process as it was found.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Start in clock ticks after boot: tells two processes of one number apart.
    pub start_ticks: u64,
    /// Command name.
    pub comm: String,
    /// A thread of the kernel.
    pub kernel: bool,
    /// Its cgroups.
    pub membership: Membership,
    /// CPU time of all its threads, the ended ones included, in whole ticks, ns.
    pub tick_cpu_ns: u64,
    /// By thread id.
    pub threads: BTreeMap<u32, Times>,
}

/// One thread's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// CLOCK_MONOTONIC of the reading, ns.
    pub at_ns: u64,
    /// Age at the reading, ns; looked up only for threads that the snapshot before does not have.
    pub age_ns: Option<u64>,
    /// Time on a CPU, ns.
    pub cpu_ns: u64,
    /// Time runnable without a CPU, throttled time included, ns.
    pub run_delay_ns: u64,
}

impl Times {
    /// CLOCK_MONOTONIC of the thread's start, ns; that of the reading where its age is unknown.
    fn born_ns(&self) -> u64 {
        self.at_ns.saturating_sub(self.age_ns.unwrap_or(0))
    }
}

/// What a process did between two snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ran {
    /// Process id.
    pub pid: u32,
    /// Command name, the later one.
    pub comm: String,
    /// A thread of the kernel.
    pub kernel: bool,
    /// Cgroup path.
    pub cgroup: String,
    /// Threads at the end.
    pub threads: u64,
    /// Time that its threads existed, summed, ns.
    pub wall_ns: u64,
    /// Time on CPUs, ns.
    pub cpu_ns: u64,
    /// Time runnable without a CPU, throttled time included, ns.
    pub run_delay_ns: u64,
    /// Started in between: when, as CLOCK_MONOTONIC in ns.
    pub born_ns: Option<u64>,
}

/// The difference of two snapshots.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    /// Processes that were there at the end, by CPU time, the largest first.
    pub ran: Vec<Ran>,
    /// Command names of those that ended in between, with how many.
    pub gone: BTreeMap<String, u64>,
}

/// Reads all processes. Zombies are not among them; those that vanish meanwhile neither.
pub fn host_processes(root: &Path, before: Option<&Snapshot>) -> Snapshot {
    let proc = Proc::new(root);
    let uptime_ns = uptime_ns(root);
    let at_ns = monotonic_ns();
    let seen = |pid: u32| {
        let old = before.and_then(|before| before.processes.get(&pid));
        Some((pid, read(&proc, pid, old, before.is_some().then_some(uptime_ns))?))
    };
    Snapshot { at_ns, processes: proc.pids().into_iter().filter_map(seen).collect() }
}

fn read(proc: &Proc, pid: u32, old: Option<&Seen>, uptime_ns: Option<u64>) -> Option<Seen> {
    let stat = proc.stat(pid)?;
    if is_dead(&stat) {
        return None;
    }
    let old = old.filter(|old| old.start_ticks == stat.starttime);
    let known = |tid: &u32| old.is_some_and(|old| old.threads.contains_key(tid));
    let mut threads = BTreeMap::new();
    for tid in proc.tasks(pid) {
        let Some((cpu_ns, run_delay_ns)) = schedstat(proc, pid, tid) else { continue };
        let at_ns = monotonic_ns();
        let age_ns = uptime_ns.filter(|_| !known(&tid)).and_then(|uptime| age_ns(proc, pid, tid, uptime));
        threads.insert(tid, Times { at_ns, age_ns, cpu_ns, run_delay_ns });
    }
    Some(Seen {
        start_ticks: stat.starttime,
        kernel: is_kernel_thread(&stat),
        membership: old.map_or_else(|| Membership::of(proc, pid), |old| old.membership.clone()),
        tick_cpu_ns: ticks_ns(stat.utime + stat.stime),
        comm: stat.comm,
        threads,
    })
}

/// CPU time and run delay of a thread.
fn schedstat(proc: &Proc, pid: u32, tid: u32) -> Option<(u64, u64)> {
    let line = text(&proc.of(pid, &format!("task/{tid}/schedstat")))?;
    let mut numbers = line.split_whitespace().map_while(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

fn age_ns(proc: &Proc, pid: u32, tid: u32, uptime_ns: u64) -> Option<u64> {
    Some(uptime_ns.saturating_sub(ticks_ns(proc.stat_of_thread(pid, tid)?.starttime)))
}

fn uptime_ns(root: &Path) -> u64 {
    let uptime = text(&root.join("proc/uptime")).unwrap_or_default();
    let seconds: f64 = uptime.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    (seconds * 1e9) as u64
}

fn ticks_ns(ticks: u64) -> u64 {
    ticks * (1_000_000_000 / procfs::ticks_per_second())
}

/// What every process did from one snapshot to the next.
pub fn difference(before: &Snapshot, after: &Snapshot) -> Difference {
    let same = |pid: &u32, seen: &Seen| before.processes.get(pid).filter(|old| old.start_ticks == seen.start_ticks);
    let mut ran: Vec<Ran> =
        after.processes.iter().map(|(pid, seen)| process_difference(*pid, same(pid, seen), seen)).collect();
    ran.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then(a.pid.cmp(&b.pid)));
    let mut gone: BTreeMap<String, u64> = BTreeMap::new();
    for (pid, old) in &before.processes {
        if after.processes.get(pid).is_none_or(|seen| seen.start_ticks != old.start_ticks) {
            *gone.entry(old.comm.clone()).or_default() += 1;
        }
    }
    Difference { ran, gone }
}

fn process_difference(pid: u32, old: Option<&Seen>, seen: &Seen) -> Ran {
    let mut ran = Ran {
        pid,
        comm: seen.comm.clone(),
        kernel: seen.kernel,
        cgroup: seen.membership.name(),
        threads: seen.threads.len() as u64,
        born_ns: old.is_none().then(|| seen.threads.get(&pid).map_or(0, Times::born_ns)),
        ..Ran::default()
    };
    for (tid, now) in &seen.threads {
        let then = old.and_then(|old| old.threads.get(tid)).copied().unwrap_or_default();
        let cpu_ns = now.cpu_ns.saturating_sub(then.cpu_ns);
        let run_delay_ns = now.run_delay_ns.saturating_sub(then.run_delay_ns);
        // A new thread existed since its start; where that is unknown, as long as it ran and waited. The start
        // is rounded to ticks, so what it did is a bound as well.
        let existed_ns = if then.at_ns > 0 { now.at_ns.saturating_sub(then.at_ns) } else { now.age_ns.unwrap_or(0) };
        ran.wall_ns += existed_ns.max(cpu_ns + run_delay_ns);
        ran.cpu_ns += cpu_ns;
        ran.run_delay_ns += run_delay_ns;
    }
    // Threads that ended in between: their CPU time is in the tick count only, with its rounding.
    let ticks_ns = seen.tick_cpu_ns.saturating_sub(old.map_or(0, |old| old.tick_cpu_ns));
    if ticks_ns > ran.cpu_ns + self::ticks_ns(2) {
        ran.wall_ns += ticks_ns - ran.cpu_ns;
        ran.cpu_ns = ticks_ns;
    }
    ran
}

#[cfg(test)]
mod tests;
