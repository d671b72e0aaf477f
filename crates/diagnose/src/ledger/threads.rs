// SPDX-License-Identifier: Apache-2.0
//! The thread ledger: where each thread's wall time went.
//!
//! On-CPU, run-queue, preempted, throttled, blocked and interrupted time are the scheduler's exact
//! counters. What kind of block it was comes from table `wait`. How on-CPU time splits into user
//! and kernel comes from samples, scaled to the exact time, and carries its standard error; a
//! thread without samples keeps its CPU time on a line of its own instead of a guess.
//! Lines add up to the wall time; coverage is one minus the sum of what each thread is off by.

use std::collections::{BTreeMap, HashMap};

use recording::tables;

use super::blocked::{Blocked, of_wait};
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::facts::stacks::Stacks;
use crate::statistics::{Weights, ratio, share, share_error};
use crate::syscall::family;

/// Ledger lines of a thread or of many, ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// Time that the threads existed.
    pub wall_ns: f64,
    /// On a CPU; the four lines below are its parts.
    pub cpu_ns: f64,
    /// User mode.
    pub user_ns: f64,
    /// Kernel mode, outside the calls of the next line.
    pub kernel_ns: f64,
    /// Kernel mode inside calls that wait for something: poll family, read and recv, accept, sleep, futex, yield.
    pub kernel_in_wait_calls_ns: f64,
    /// On-CPU time of threads that no sample hit.
    pub cpu_unsplit_ns: f64,
    /// Runnable after a wakeup.
    pub run_queue_ns: f64,
    /// Runnable after a preemption.
    pub preempted_ns: f64,
    /// Held by a quota.
    pub throttled_ns: f64,
    /// On a CPU, but interrupts or the hypervisor used it.
    pub interrupted_ns: f64,
    /// Blocked, by kind; kinds without time have no entry.
    pub blocked_ns: BTreeMap<Blocked, f64>,
    /// Standard error of the user share of `cpu_ns`, 0 to 1.
    pub user_share_error: f64,
}

impl Lines {
    /// Time in which the threads wanted a CPU, had it or not: the base of run-queue and quota shares.
    pub fn demand_ns(&self) -> f64 {
        self.cpu_ns + self.run_queue_ns + self.preempted_ns + self.throttled_ns
    }

    /// Runnable without running, quota apart.
    pub fn waiting_for_cpu_ns(&self) -> f64 {
        self.run_queue_ns + self.preempted_ns
    }

    /// Blocked time of one kind.
    pub fn blocked(&self, kind: Blocked) -> f64 {
        self.blocked_ns.get(&kind).copied().unwrap_or(0.0)
    }

    /// Lines without the wall, which they should add up to.
    pub fn sum_ns(&self) -> f64 {
        self.demand_ns() + self.interrupted_ns + self.blocked_ns.values().sum::<f64>()
    }

    /// Share of `cpu_ns` in user mode, of what was split.
    pub fn user_share(&self) -> f64 {
        share(self.user_ns, self.user_ns + self.kernel_ns + self.kernel_in_wait_calls_ns)
    }

    /// Public names of the lines of time on a CPU.
    pub const ON_CPU: [&str; 4] = ["user", "kernel", "kernel_in_wait_calls", "cpu_unsplit"];

    /// Every line that has time, by its public name, ns.
    pub fn named(&self) -> Vec<(&'static str, f64)> {
        let mut lines = vec![
            ("user", self.user_ns),
            ("kernel", self.kernel_ns),
            ("kernel_in_wait_calls", self.kernel_in_wait_calls_ns),
            ("cpu_unsplit", self.cpu_unsplit_ns),
            ("run_queue", self.run_queue_ns),
            ("preempted", self.preempted_ns),
            ("throttled", self.throttled_ns),
            ("interrupted", self.interrupted_ns),
        ];
        lines.extend(Blocked::ALL.iter().map(|&b| (b.line(), self.blocked(b))));
        lines.retain(|(_, ns)| *ns > 0.0);
        lines
    }

    fn add(&mut self, other: &Lines) {
        // Errors of shares add up as weighted by the time they are shares of, in quadrature.
        let variance = (self.user_share_error * self.cpu_ns).powi(2) + (other.user_share_error * other.cpu_ns).powi(2);
        self.wall_ns += other.wall_ns;
        self.cpu_ns += other.cpu_ns;
        self.user_ns += other.user_ns;
        self.kernel_ns += other.kernel_ns;
        self.kernel_in_wait_calls_ns += other.kernel_in_wait_calls_ns;
        self.cpu_unsplit_ns += other.cpu_unsplit_ns;
        self.run_queue_ns += other.run_queue_ns;
        self.preempted_ns += other.preempted_ns;
        self.throttled_ns += other.throttled_ns;
        self.interrupted_ns += other.interrupted_ns;
        for (&kind, ns) in &other.blocked_ns {
            *self.blocked_ns.entry(kind).or_default() += ns;
        }
        self.user_share_error = ratio(variance.sqrt(), self.cpu_ns);
    }
}

/// Of the window, a thread in one state: it never left it. The rest is what the books are off by.
pub const ALL_THE_TIME: f64 = 0.95;

/// One thread; with `tid` 0 the short-lived threads of one command name together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadLedger {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Command name.
    pub comm: String,
    /// How many threads this stands for.
    pub instances: u64,
    /// Where its time went.
    pub lines: Lines,
    /// Switches because it blocked.
    pub voluntary_switches: u64,
    /// Switches because another thread was to run.
    pub involuntary_switches: u64,
}

/// All threads in one slice of the capture, for charts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slice {
    /// End of the slice, ns after the start.
    pub t_ns: u64,
    /// Length of the slice, ns.
    pub length_ns: f64,
    /// On a CPU, ns.
    pub cpu_ns: f64,
    /// Runnable after a wakeup, ns.
    pub run_queue_ns: f64,
    /// Runnable after a preemption, ns.
    pub preempted_ns: f64,
    /// Throttled, ns.
    pub throttled_ns: f64,
    /// Blocked, ns.
    pub blocked_ns: f64,
    /// Interrupted, ns.
    pub interrupted_ns: f64,
}

/// The ledger of the target.
pub struct Threads {
    /// By thread, most CPU and waiting for it first.
    pub threads: Vec<ThreadLedger>,
    /// All together.
    pub total: Lines,
    /// All threads by time.
    pub slices: Vec<Slice>,
    /// Share of wall time that lines account for.
    pub coverage: f64,
    /// Share of blocked time that has a kernel stack.
    pub blocked_with_stack: f64,
    /// Where a thread is in the list, by its process and its own id.
    by_id: HashMap<(u32, u32), usize>,
}

type Key = (u32, u32, String);

impl Fact for Threads {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<tables::Thread>();
        if rows.is_empty() {
            return Err(Gap::not_recorded(
                "thread",
                "the recording has no thread ledger: the scheduler probe did not run",
            ));
        }
        let mut threads: BTreeMap<Key, ThreadLedger> = BTreeMap::new();
        let mut blocked: BTreeMap<Key, f64> = BTreeMap::new();
        for row in rows {
            let key = key(row.pid, row.tid, &row.comm);
            *blocked.entry(key.clone()).or_default() += row.blocked_ns as f64;
            add_row(threads.entry(key).or_default(), row);
        }
        let with_stack = add_blocked(case, &mut threads, &blocked)?;
        split_cpu(case, &mut threads);
        let mut total = Lines::default();
        threads.values().for_each(|t| total.add(&t.lines));
        let off: f64 = threads.values().map(|t| (t.lines.sum_ns() - t.lines.wall_ns).abs()).sum();
        let mut threads: Vec<ThreadLedger> = threads.into_values().collect();
        threads.sort_by(|a, b| b.lines.demand_ns().total_cmp(&a.lines.demand_ns()));
        let by_id = threads.iter().enumerate().map(|(at, thread)| ((thread.pid, thread.tid), at)).collect();
        let coverage = if total.wall_ns > 0.0 { 1.0 - share(off, total.wall_ns) } else { 0.0 };
        Ok(Threads {
            coverage,
            blocked_with_stack: share(with_stack, blocked.values().sum()),
            slices: slices(rows),
            threads,
            total,
            by_id,
        })
    }
}

impl Threads {
    /// The thread with this id; short-lived ones have none.
    pub fn thread(&self, pid: u32, tid: u32) -> Option<&ThreadLedger> {
        self.by_id.get(&(pid, tid)).filter(|_| tid != 0).map(|at| &self.threads[*at])
    }

    /// How often threads gave up a CPU, or lost it: each waited for one at most as often.
    pub fn switches(&self) -> u64 {
        self.threads.iter().map(|t| t.voluntary_switches + t.involuntary_switches).sum()
    }
}

/// A thread may rename itself: only short-lived ones are told apart by name.
fn key(pid: u32, tid: u32, comm: &str) -> Key {
    (pid, tid, if tid == 0 { comm.to_string() } else { String::new() })
}

fn add_row(thread: &mut ThreadLedger, row: &tables::Thread) {
    thread.pid = row.pid;
    thread.tid = row.tid;
    thread.comm.clone_from(&row.comm);
    // A thread has a row a slice; short-lived ones end once each.
    thread.instances = if row.tid == 0 { thread.instances.saturating_add(row.instances) } else { row.instances.max(1) };
    thread.voluntary_switches = thread.voluntary_switches.saturating_add(row.voluntary_switches);
    thread.involuntary_switches = thread.involuntary_switches.saturating_add(row.involuntary_switches);
    let lines = &mut thread.lines;
    lines.wall_ns += row.wall_ns as f64;
    lines.cpu_ns += row.cpu_ns as f64;
    lines.run_queue_ns += row.run_queue_ns as f64;
    lines.preempted_ns += row.preempted_ns as f64;
    lines.throttled_ns += row.throttled_ns as f64;
    lines.interrupted_ns += row.interrupted_ns as f64;
}

/// Splits blocked time by kind; returns how much of it has a kernel stack.
fn add_blocked(
    case: &Case,
    threads: &mut BTreeMap<Key, ThreadLedger>,
    blocked: &BTreeMap<Key, f64>,
) -> Result<f64, Gap> {
    let stacks = case.fact::<Stacks>()?;
    let mut with_stack = 0.0;
    let mut young = BTreeMap::<Blocked, f64>::new();
    for row in case.recording.rows::<tables::Wait>() {
        with_stack += if stacks.frames(row.stack).next().is_none() { 0.0 } else { row.total_ns as f64 };
        let into = match threads.get_mut(&key(row.pid, row.tid, "")) {
            Some(thread) if row.tid != 0 => &mut thread.lines.blocked_ns,
            _ => &mut young,
        };
        *into.entry(of_wait(case, &stacks, row)).or_default() += row.total_ns as f64;
    }
    spread(young, threads, blocked);
    for (key, thread) in threads.iter_mut() {
        let rest = unexplained(key, thread, blocked);
        if rest > 0.0 {
            thread.lines.blocked_ns.insert(Blocked::Unattributed, rest);
        }
    }
    Ok(with_stack)
}

/// Blocked time of a thread without a kind so far, ns.
fn unexplained(key: &Key, thread: &ThreadLedger, blocked: &BTreeMap<Key, f64>) -> f64 {
    let known: f64 = thread.lines.blocked_ns.values().sum();
    (blocked.get(key).copied().unwrap_or(0.0) - known).max(0.0)
}

/// Waits of young threads carry no name. They are shared among the short-lived by blocked time, and what is more than
/// theirs among those that have grown older since.
fn spread(mut waits: BTreeMap<Blocked, f64>, threads: &mut BTreeMap<Key, ThreadLedger>, blocked: &BTreeMap<Key, f64>) {
    for short_lived in [true, false] {
        let of = || |(key, _): &(&Key, &mut ThreadLedger)| (key.1 == 0) == short_lived;
        let room: f64 = threads.iter_mut().filter(of()).map(|(key, thread)| unexplained(key, thread, blocked)).sum();
        let left: f64 = waits.values().sum();
        let taken = if short_lived { share(left.min(room), left) } else { 1.0 };
        for (key, thread) in threads.iter_mut().filter(of()) {
            let part = taken * share(unexplained(key, thread, blocked), room);
            for (&kind, ns) in waits.iter().filter(|_| part > 0.0) {
                *thread.lines.blocked_ns.entry(kind).or_default() += ns * part;
            }
        }
        waits.values_mut().for_each(|ns| *ns *= 1.0 - taken);
    }
}

/// Samples of one thread, by where the CPU was.
#[derive(Default)]
struct Modes {
    weights: Weights,
    all: f64,
    kernel: f64,
    wait_calls: f64,
}

fn split_cpu(case: &Case, threads: &mut BTreeMap<Key, ThreadLedger>) {
    let mut modes: BTreeMap<Key, Modes> = BTreeMap::new();
    for s in case.recording.rows::<tables::Sample>() {
        let exact = key(s.pid, s.tid, "");
        // Samples carry true ids; a thread that the ledger keeps among the short-lived is found by name.
        let key = if threads.contains_key(&exact) { exact } else { (0, 0, s.comm.clone()) };
        let m = modes.entry(key).or_default();
        let weight = f64::from(s.weight.max(1));
        m.weights.add(weight);
        m.all += weight;
        if s.kernel && family(&case.syscall(s.syscall)).waits() {
            m.wait_calls += weight;
        } else if s.kernel {
            m.kernel += weight;
        }
    }
    for (key, thread) in threads.iter_mut() {
        let lines = &mut thread.lines;
        match modes.get(key).filter(|m| m.all > 0.0) {
            None => lines.cpu_unsplit_ns = lines.cpu_ns,
            Some(m) => {
                lines.kernel_ns = lines.cpu_ns * m.kernel / m.all;
                lines.kernel_in_wait_calls_ns = lines.cpu_ns * m.wait_calls / m.all;
                lines.user_ns = lines.cpu_ns - lines.kernel_ns - lines.kernel_in_wait_calls_ns;
                lines.user_share_error = share_error(m.kernel + m.wait_calls, m.all, m.weights.effective());
            }
        }
    }
}

fn slices(rows: &[tables::Thread]) -> Vec<Slice> {
    let mut by_time: BTreeMap<u64, Slice> = BTreeMap::new();
    for row in rows {
        let s = by_time.entry(row.t_ns).or_default();
        s.cpu_ns += row.cpu_ns as f64;
        s.run_queue_ns += row.run_queue_ns as f64;
        s.preempted_ns += row.preempted_ns as f64;
        s.throttled_ns += row.throttled_ns as f64;
        s.blocked_ns += row.blocked_ns as f64;
        s.interrupted_ns += row.interrupted_ns as f64;
    }
    let mut before = 0;
    by_time
        .into_iter()
        .map(|(t_ns, slice)| {
            let length_ns = (t_ns - before) as f64;
            before = t_ns;
            Slice { t_ns, length_ns, ..slice }
        })
        .collect()
}

#[cfg(test)]
mod tests;
