// SPDX-License-Identifier: Apache-2.0
//! What could be full: each thread, the allowed CPUs, the quota, and a service that runs one thing
//! at a time. Shares of use, without opinion on where full begins.

mod together;

use std::ops::RangeInclusive;

use super::cpus::Cpus;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::threads::{Slice, ThreadLedger, Threads};
use crate::statistics::{ratio, share};

/// A thread's use of the one CPU that it can use at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadUse {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Command name.
    pub comm: String,
    /// On-CPU share of its wall time.
    pub on_cpu: f64,
    /// Share of its wall time in which it had or wanted a CPU.
    pub demand: f64,
    /// Its share of the target's CPU time.
    pub of_target: f64,
}

/// Use of everything that bounds how much CPU the target can have.
pub struct Limits {
    /// Threads by demand, highest first; those that lived less than half the window are left out.
    pub threads: Vec<ThreadUse>,
    /// Use of the allowed CPUs by anybody; none without counters.
    pub allowed_cpus: Option<f64>,
    /// The target's share of that use.
    pub target_share: Option<f64>,
    /// The quota in CPUs; none without one.
    pub quota_cpus: Option<f64>,
    /// Use of the quota by its group, else by the target; none without quota or counters.
    pub quota: Option<f64>,
    /// CPUs' worth of work of the target.
    pub cores: f64,
    /// Share of slices in which the target used about one CPU, if all of them together did: a service of many
    /// threads that only ever runs one at a time (a global lock, one busy goroutine) leaves no gap.
    pub one_at_a_time: f64,
    /// Share of the samples in user mode in which another thread was sampled on another CPU at the same moment: a pool
    /// that happens to use one CPU has many, a lock leaves next to none. It is no more than the share of samples after which the next one
    /// is of another thread, because who runs beside it comes in between: where the work hardly ever moves from CPU to CPU, that tells.
    /// None where there are too few samples.
    pub together: Option<f64>,
}

impl Fact for Limits {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let cpus = case.fact::<Cpus>()?;
        let ledger = case.fact::<Threads>().ok();
        let threads = ledger.as_ref().map_or_else(Vec::new, |l| by_demand(l, case.length_ns()));
        let quota_cpus = cpus.quota_cpus(case);
        let quota = quota_cpus.zip(cpus.quota_used_ns()).map(|(q, used)| share(used, q * case.length_ns()));
        Ok(Limits {
            threads,
            allowed_cpus: cpus.allowed_time.map(|t| t.utilization()),
            target_share: cpus.target_share_of_busy(),
            quota_cpus,
            quota,
            cores: cpus.target_cores(case).unwrap_or(0.0),
            one_at_a_time: ledger.map_or(0.0, |l| one_at_a_time(&l)),
            together: together::together(case),
        })
    }
}

fn by_demand(ledger: &Threads, length_ns: f64) -> Vec<ThreadUse> {
    let all = ledger.total.cpu_ns;
    let long_lived = |t: &&ThreadLedger| t.tid != 0 && t.lines.wall_ns > 0.0 && t.lines.wall_ns >= length_ns / 2.0;
    let mut threads: Vec<ThreadUse> = ledger
        .threads
        .iter()
        .filter(long_lived)
        .map(|t| ThreadUse {
            pid: t.pid,
            tid: t.tid,
            comm: t.comm.clone(),
            on_cpu: share(t.lines.cpu_ns, t.lines.wall_ns),
            // Interrupts and stolen time are no time that the thread could have used otherwise.
            demand: share(t.lines.demand_ns() + t.lines.interrupted_ns, t.lines.wall_ns),
            of_target: share(t.lines.cpu_ns, all),
        })
        .collect();
    threads.sort_by(|a, b| b.demand.total_cmp(&a.demand).then((a.pid, a.tid).cmp(&(b.pid, b.tid))));
    threads
}

/// CPUs that a service uses which runs one thing at a time, and always has something to run: over the whole window, and in a slice, of
/// which a disturbed host takes a bit more.
const ONE: RangeInclusive<f64> = 0.985..=1.05;
const ONE_IN_A_SLICE: RangeInclusive<f64> = 0.97..=1.05;

fn one_at_a_time(ledger: &Threads) -> f64 {
    let sum = |of: fn(&Slice) -> f64| ledger.slices.iter().map(of).sum::<f64>();
    // Two slices are no pattern; and a slice may be off by what the host did, all of them together are not.
    if ledger.slices.len() < 3 || !ONE.contains(&ratio(sum(|s| s.cpu_ns), sum(|s| s.length_ns))) {
        return 0.0;
    }
    let steady = ledger.slices.iter().filter(|s| ONE_IN_A_SLICE.contains(&ratio(s.cpu_ns, s.length_ns))).count();
    share(steady as f64, ledger.slices.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn threads_and_slices() {
        let mut text = "meta length_ns=4e9\n".to_string();
        for slice in 1..=4u64 {
            for (tid, cpu, queue) in [(1, 6e8, 3e8), (2, 4e8, 0.0)] {
                text += &format!(
                    "thread t_ns={}e9 pid=1 tid={tid} wall_ns=1e9 cpu_ns={cpu} run_queue_ns={queue} blocked_ns={}\n",
                    slice,
                    1e9 - cpu - queue
                );
            }
        }
        text += "thread t_ns=1e9 pid=1 tid=3 wall_ns=1e8 cpu_ns=4e7\n";
        let recording = parse(&text).unwrap();
        let limits = Case::new(&recording).fact::<Limits>().unwrap();
        let threads: Vec<(u32, f64, f64)> = limits.threads.iter().map(|t| (t.tid, t.on_cpu, t.demand)).collect();
        assert_eq!(threads, [(1, 0.6, 0.9), (2, 0.4, 0.4)], "the short-lived thread is no limit");
        assert_eq!(limits.one_at_a_time, 1.0);
        let slices = |cores: &[f64]| {
            let row = |(nth, cores): (usize, f64)| {
                format!("thread t_ns={}e9 pid=1 tid=1 wall_ns=1e9 cpu_ns={}\n", nth + 1, cores * 1e9)
            };
            let text: String = cores.iter().copied().enumerate().map(row).collect();
            let recording = parse(&format!("meta length_ns=4e9\n{text}")).unwrap();
            Case::new(&recording).fact::<Limits>().unwrap().one_at_a_time
        };
        assert_eq!((slices(&[1.0; 3]), slices(&[1.0; 2])), (1.0, 0.0), "two are no pattern");
        assert_eq!(slices(&[1.02, 0.965, 0.99, 0.99]), 0.75, "the host took a bit of one");
        assert_eq!(slices(&[1.0, 0.975, 0.985, 0.985]), 1.0, "and a little of some");
        assert_eq!(slices(&[1.0, 0.9, 1.0, 1.0]), 0.0, "gaps are none of a lock's");
        assert_eq!((limits.allowed_cpus, limits.quota), (None, None));
    }
}
