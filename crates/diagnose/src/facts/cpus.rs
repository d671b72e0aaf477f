// SPDX-License-Identifier: Apache-2.0
//! The CPUs that the target may use: how full they were, with what, and who else ran there.

mod queue;

use std::collections::BTreeMap;

use recording::counters::{Key, cgroup_cpu, stat};
use recording::tables;

use super::counters::Counters;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::threads::Threads;
use crate::statistics::{ratio, share};
pub use queue::{Lengths, Neighbour};
use queue::{Queue, own_samples};

/// One CPU over the window, by `/proc/stat`, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// User mode, nice included.
    pub user_ns: f64,
    /// Kernel mode, interrupts apart.
    pub system_ns: f64,
    /// Hardware and software interrupts.
    pub interrupt_ns: f64,
    /// The hypervisor ran somebody else.
    pub steal_ns: f64,
    /// Idle, waiting for I/O included.
    pub idle_ns: f64,
}

impl CpuTime {
    /// Time in which the CPU was used by somebody here.
    pub fn busy_ns(&self) -> f64 {
        self.user_ns + self.system_ns + self.interrupt_ns
    }

    /// Everything.
    pub fn total_ns(&self) -> f64 {
        self.busy_ns() + self.steal_ns + self.idle_ns
    }

    /// Share of time that was not idle. Stolen time counts: it cannot be used for more work.
    pub fn utilization(&self) -> f64 {
        share(self.busy_ns() + self.steal_ns, self.total_ns())
    }

    fn add(&mut self, other: &CpuTime) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.interrupt_ns += other.interrupt_ns;
        self.steal_ns += other.steal_ns;
        self.idle_ns += other.idle_ns;
    }
}

/// A CPU quota at work, by the cgroup's own counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quota {
    /// Cgroup that sets it.
    pub cgroup: String,
    /// The quota in CPUs.
    pub cpus: Option<f64>,
    /// Length of an enforcement period, ns.
    pub period_ns: Option<f64>,
    /// Periods in the window in which the group ran.
    pub periods: f64,
    /// Periods in which it was throttled.
    pub throttled_periods: f64,
    /// Throttled time as the kernel counts it, summed over CPUs, ns.
    pub throttled_ns: f64,
    /// CPU time of the whole group, ns.
    pub usage_ns: Option<f64>,
}

/// The CPUs of the case.
pub struct Cpus {
    /// Online CPUs.
    pub online: u32,
    /// CPUs that the target may use, ascending; empty = not known.
    pub allowed: Vec<u32>,
    /// By CPU; empty without counters.
    pub by_cpu: BTreeMap<u32, CpuTime>,
    /// The allowed CPUs together; none without counters.
    pub allowed_time: Option<CpuTime>,
    /// The other CPUs together; none without counters or where there is no other.
    pub other_time: Option<CpuTime>,
    /// CPU time of the target, ns, by the ledger, else by samples; none without either.
    pub target_ns: Option<f64>,
    /// Share of the allowed CPUs' time that was in use, of each slice as much as the target waited for a CPU in it; none
    /// where that is not known by slice.
    pub used_while_waiting: Option<f64>,
    /// Other processes on the allowed CPUs, the most in the way first.
    pub neighbours: Vec<Neighbour>,
    /// Whether the recording tells who else ran.
    pub neighbours_known: bool,
    /// Run-queue time of the target behind other processes by the length of the wait; none where it was not recorded.
    pub lengths: Option<Lengths>,
    /// Run-queue time of the target, ns, in which one of its own processes had the CPU.
    pub own_delay_ns: f64,
    /// Likewise the recorder.
    pub observer_delay_ns: f64,
    /// The quota that throttled most, or the only one; none where there is none.
    pub quota: Option<Quota>,
}

impl Fact for Cpus {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let target = &case.recording.meta.target;
        let counters = case.fact::<Counters>().ok();
        let by_cpu = counters.as_ref().map_or_else(BTreeMap::new, |c| by_cpu(c));
        let mut allowed = target.allowed_cpus.clone();
        if allowed.is_empty() {
            allowed = by_cpu.keys().copied().collect();
        }
        let target_ns = match case.fact::<Threads>() {
            Ok(threads) => Some(threads.total.cpu_ns),
            Err(_) => sampled_cpu_ns(case),
        };
        let queue = Queue::new(case);
        Ok(Cpus {
            online: case.recording.meta.host.cpus.max(by_cpu.len() as u32),
            allowed_time: together(by_cpu.iter().filter(|(n, _)| allowed.contains(n))),
            other_time: together(by_cpu.iter().filter(|(n, _)| !allowed.contains(n))),
            used_while_waiting: counters.as_ref().and_then(|c| used_while_waiting(case, c, &allowed)),
            neighbours: queue.neighbours,
            lengths: queue.lengths,
            own_delay_ns: queue.own_ns,
            observer_delay_ns: queue.observer_ns,
            neighbours_known: case.recording.tables.has::<tables::Neighbour>(),
            quota: counters.and_then(|c| quota(case, &c)),
            target_ns,
            by_cpu,
            allowed,
        })
    }
}

impl Cpus {
    /// How many CPUs the target may use; 0 = not known.
    pub fn allowed_count(&self) -> f64 {
        if self.allowed.is_empty() { f64::from(self.online) } else { self.allowed.len() as f64 }
    }

    /// CPUs' worth of work that the target did.
    pub fn target_cores(&self, case: &Case) -> Option<f64> {
        self.target_ns.map(|ns| ratio(ns, case.length_ns()))
    }

    /// Share of the used time of the allowed CPUs that the target used.
    pub fn target_share_of_busy(&self) -> Option<f64> {
        Some(share(self.target_ns?, self.allowed_time?.busy_ns()))
    }

    /// The quota in CPUs, by the counters, else as it was when the capture began; none where there is none.
    pub fn quota_cpus(&self, case: &Case) -> Option<f64> {
        let counted = self.quota.as_ref().and_then(|q| q.cpus);
        counted.or(case.recording.meta.target.quota_cpus).filter(|cpus| *cpus > 0.0)
    }

    /// What was used of the quota, ns: by its group, else what is known of it, the target.
    pub fn quota_used_ns(&self) -> Option<f64> {
        self.quota.as_ref().and_then(|q| q.usage_ns).or(self.target_ns)
    }

    /// How much of the target's waiting for a CPU was behind other processes, 0 to 1: the rest was
    /// behind its own threads or the recorder. None where no wait was long enough to be told.
    pub fn others_in_the_way(&self) -> Option<f64> {
        let others = self.others_delay_ns()?;
        Some(share(others, others + self.own_delay_ns + self.observer_delay_ns))
    }

    /// Time that the target waited for a CPU behind other processes, ns, in waits long enough to
    /// be told. None where none was.
    pub fn others_delay_ns(&self) -> Option<f64> {
        let others: f64 = self.neighbours.iter().map(|n| n.delayed_ns).sum();
        (others + self.own_delay_ns + self.observer_delay_ns > 0.0).then_some(others)
    }

    /// Like [`Self::others_in_the_way`], by counters: used time of the allowed CPUs that is not the target's.
    pub fn others_by_counters(&self) -> Option<f64> {
        let busy = self.allowed_time?.busy_ns();
        Some(share((busy - self.target_ns?).max(0.0), busy))
    }
}

fn by_cpu(counters: &Counters) -> BTreeMap<u32, CpuTime> {
    read_cpus(counters, |key, cpu| counters.delta(key, cpu))
}

/// The time of each CPU, by what `delta` says that its counters grew.
fn read_cpus(counters: &Counters, delta: impl Fn(Key, &str) -> Option<f64>) -> BTreeMap<u32, CpuTime> {
    let cpus = counters.entities(stat::SOURCE).filter_map(|e| Some((e.strip_prefix("cpu")?.parse::<u32>().ok()?, e)));
    cpus.filter_map(|(number, entity)| {
        let read = |keys: &[Key]| keys.iter().filter_map(|key| delta(*key, entity)).reduce(|a, b| a + b);
        let time = CpuTime {
            user_ns: read(&[stat::USER_NS, stat::NICE_NS]).unwrap_or(0.0),
            system_ns: read(&[stat::SYSTEM_NS]).unwrap_or(0.0),
            interrupt_ns: read(&[stat::IRQ_NS, stat::SOFTIRQ_NS]).unwrap_or(0.0),
            steal_ns: read(&[stat::STEAL_NS]).unwrap_or(0.0),
            idle_ns: read(&[stat::IDLE_NS, stat::IOWAIT_NS])?,
        };
        (time.total_ns() > 0.0).then_some((number, time))
    })
    .collect()
}

/// See [`Cpus::used_while_waiting`].
fn used_while_waiting(case: &Case, counters: &Counters, allowed: &[u32]) -> Option<f64> {
    let (mut weighed, mut all, mut from) = (0.0, 0.0, 0);
    for slice in &case.fact::<Threads>().ok()?.slices {
        let moments = (from, slice.t_ns);
        from = slice.t_ns;
        let by_cpu = read_cpus(counters, |key, cpu| counters.delta_between(key, cpu, moments));
        let used = together(by_cpu.iter().filter(|(number, _)| allowed.contains(number)));
        let waited = slice.run_queue_ns + slice.preempted_ns;
        if let Some(used) = used {
            weighed += used.utilization() * waited;
            all += waited;
        }
    }
    (all > 0.0).then(|| weighed / all)
}

fn together<'a>(cpus: impl Iterator<Item = (&'a u32, &'a CpuTime)>) -> Option<CpuTime> {
    cpus.map(|(_, time)| *time).reduce(|mut a, b| {
        a.add(&b);
        a
    })
}

/// CPU time of the target by samples, ns; none where there is no sample.
fn sampled_cpu_ns(case: &Case) -> Option<f64> {
    let samples = own_samples(case);
    let hz = f64::from(case.recording.meta.target.sample_hz);
    (samples > 0.0 && hz > 0.0).then(|| ratio(samples * 1e9, hz))
}

/// Of all groups on the path to the root, the one that throttled most.
fn quota(case: &Case, counters: &Counters) -> Option<Quota> {
    let read = |path: &str| {
        let (quota, period) = (counters.last(cgroup_cpu::QUOTA_NS, path), counters.last(cgroup_cpu::PERIOD_NS, path));
        Quota {
            cgroup: path.to_string(),
            cpus: quota.zip(period).map(|(q, p)| ratio(q, p)).filter(|c| *c > 0.0),
            period_ns: period,
            periods: counters.delta(cgroup_cpu::NR_PERIODS, path).unwrap_or(0.0),
            throttled_periods: counters.delta(cgroup_cpu::NR_THROTTLED, path).unwrap_or(0.0),
            throttled_ns: counters.delta(cgroup_cpu::THROTTLED_NS, path).unwrap_or(0.0),
            usage_ns: counters.delta(cgroup_cpu::USAGE_NS, path),
        }
    };
    let target = &case.recording.meta.target;
    let mut found = counters
        .entities(cgroup_cpu::SOURCE)
        .map(read)
        .filter(|q| q.cpus.is_some() || q.throttled_periods > 0.0)
        .max_by(|a, b| {
            a.throttled_ns
                .total_cmp(&b.throttled_ns)
                .then(b.cpus.unwrap_or(f64::MAX).total_cmp(&a.cpus.unwrap_or(f64::MAX)))
        });
    if let Some(q) = found.as_mut().filter(|q| q.cpus.is_none()) {
        q.cpus = target.quota_cpus.filter(|c| *c > 0.0);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn allowed_and_others() {
        let mut text = "meta target.allowed_cpus=[0] host.cpus=2 length_ns=1e9
            thread pid=1 tid=1 wall_ns=1e9 cpu_ns=6e8
            neighbour pid=9 comm=hog samples=40 delayed_ns=30
            neighbour pid=8 comm=log samples=50 delayed_ns=1
            neighbour pid=1 comm=svc own=true delayed_ns=60
            sample pid=1 tid=1 weight=60\n"
            .to_string();
        for (cpu, user, idle) in [("cpu0", 9e8, 1e8), ("cpu1", 1e8, 9e8), ("cpu", 1e9, 1e9)] {
            for (name, value) in [("user_ns", user), ("idle_ns", idle)] {
                text += &format!("counter source=proc/stat entity={cpu} name={name} value=5\n");
                text += &format!("counter t_ns=9 source=proc/stat entity={cpu} name={name} value={}\n", value + 5.0);
            }
        }
        let recording = parse(&text).unwrap();
        let case = Case::new(&recording);
        let cpus = case.fact::<Cpus>().unwrap();
        assert_eq!((cpus.allowed_time.unwrap().utilization(), cpus.other_time.unwrap().utilization()), (0.9, 0.1));
        assert_eq!(
            cpus.neighbours.iter().map(|n| (n.pid, n.samples, n.delayed_ns)).collect::<Vec<_>>(),
            [(9, 40.0, 30.0), (8, 50.0, 1.0)]
        );
        assert_eq!((cpus.others_in_the_way().unwrap() * 91.0).round(), 31.0);
        assert!((cpus.others_by_counters().unwrap() - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(
            (cpus.target_cores(&case), cpus.target_share_of_busy().map(|s| (s * 9.0).round())),
            (Some(0.6), Some(6.0))
        );
    }

    #[test]
    fn those_who_ran_before_the_last_one_are_told_by_samples() {
        let text = "neighbour pid=9 comm=client samples=10 delayed_ns=100
            neighbour pid=8 comm=burner samples=80 delayed_ns=20
            neighbour pid=7 comm=wakewalk observer=true samples=5 delayed_ns=7
            neighbour pid=1 own=true
            neighbour pid=0 delayed_ns=1000
            sample pid=1 tid=1 weight=5";
        let recording = parse(text).unwrap();
        let cpus = Case::new(&recording).fact::<Cpus>().unwrap();
        let named: Vec<(&str, f64)> = cpus.neighbours.iter().map(|n| (n.comm.as_str(), n.delayed_ns)).collect();
        assert_eq!(named, [("burner", 820.0), ("client", 200.0)]);
        assert_eq!((cpus.own_delay_ns, cpus.observer_delay_ns), (50.0, 57.0));
    }

    #[test]
    fn the_group_that_throttles_most() {
        let mut text = "meta length_ns=1e9\n".to_string();
        for (path, quota, throttled) in [("/", -1.0, 0.0), ("/a", 4e8, 1e8), ("/a/b", 2e8, 0.0)] {
            for (name, first, last) in [
                ("quota_ns", quota, quota),
                ("period_ns", 1e8, 1e8),
                ("nr_throttled", 3.0, 3.0 + throttled / 1e7),
                ("throttled_ns", 7.0, 7.0 + throttled),
            ] {
                text += &format!(
                    "counter source=cgroup/cpu entity={path} name={name} value={first}\ncounter t_ns=9 source=cgroup/cpu entity={path} name={name} value={last}\n"
                );
            }
        }
        let recording = parse(&text).unwrap();
        let cpus = Case::new(&recording).fact::<Cpus>().unwrap();
        let q = cpus.quota.as_ref().unwrap();
        assert_eq!((q.cgroup.as_str(), q.cpus, q.throttled_periods), ("/a", Some(4.0), 10.0));
    }

    #[test]
    fn nothing_known() {
        let recording = parse("").unwrap();
        let cpus = Case::new(&recording).fact::<Cpus>().unwrap();
        assert_eq!((cpus.allowed_count(), cpus.target_ns, cpus.others_in_the_way()), (0.0, None, None));
    }
}
