// SPDX-License-Identifier: Apache-2.0
//! Was the host itself disturbed while a scenario ran? A verdict about a service whose CPU was taken
//! by a build next door says little about the verdict's quality, so such a run is repeated.

use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::Instant;

use anyhow::Result;
use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;

use crate::procfs::{self, Host, Process, TICKS_PER_SECOND};

/// Above this share of all CPUs, steal disturbs.
const STEAL_BOUND: f64 = 0.03;
/// From this share of the time that the CPUs had work, it disturbs a host that has little to do as well.
const STOLEN_WORK: f64 = 0.10;
/// Above this share of all CPUs, other processes disturb.
const OUTSIDE_BOUND: f64 = 0.10;

/// What the host did besides the scenario, as shares of all CPUs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Disturbance {
    /// Taken by the hypervisor.
    pub steal_share: f64,
    /// The same as a share of the time that CPUs had work.
    pub steal_of_work: f64,
    /// Used by processes that belong neither to the scenario nor to the diagnosis.
    pub outside_share: f64,
}

impl Disturbance {
    /// Whether a run with it has to be repeated.
    pub fn is_too_much(&self) -> bool {
        self.is_stolen() || self.outside_share > OUTSIDE_BOUND
    }

    /// Whether a verdict says no more than what the host did, as it was measured here: then it is true, whatever the scenario.
    pub fn is_what_is_said(&self, cause: &str) -> bool {
        match cause {
            "cpu-steal" => self.is_stolen(),
            "run-queue-wait" => self.outside_share > OUTSIDE_BOUND,
            _ => false,
        }
    }

    fn is_stolen(&self) -> bool {
        self.steal_share > STEAL_BOUND || self.steal_of_work >= STOLEN_WORK
    }
}

/// The host at the start of a run.
pub struct Watch {
    began: Instant,
    host: Host,
    processes: HashMap<u32, Process>,
    children_s: f64,
}

impl Watch {
    /// Reads the host.
    ///
    /// # Errors
    /// There is no /proc.
    pub fn start() -> Result<Self> {
        Ok(Self {
            began: Instant::now(),
            host: procfs::host()?,
            processes: procfs::processes()?,
            children_s: children_seconds()?,
        })
    }

    /// Reads the host again. `ours` are the processes of the scenario and the lab that still run;
    /// wakewalk has ended by now and counts by what its parent was told of it.
    ///
    /// # Errors
    /// There is no /proc.
    pub fn finish(&self, ours: &[u32]) -> Result<Disturbance> {
        let (host, processes) = (procfs::host()?, procfs::processes()?);
        let ours: HashSet<u32> = ours.iter().copied().collect();
        let inside = self.inside_ticks(&processes, |pid, p| p.kernel_thread || ours.contains(&pid));
        let inside_s = inside / TICKS_PER_SECOND + (children_seconds()? - self.children_s);
        let cpus = thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        let whole_s = self.began.elapsed().as_secs_f64() * cpus;
        // The host's sum holds processes too short-lived to be seen twice.
        let busy_s = host.busy.saturating_sub(self.host.busy) as f64 / TICKS_PER_SECOND;
        let steal_s = host.steal.saturating_sub(self.host.steal) as f64 / TICKS_PER_SECOND;
        Ok(Disturbance {
            steal_share: steal_s / whole_s,
            steal_of_work: steal_s / (steal_s + busy_s).max(f64::EPSILON),
            outside_share: (busy_s - inside_s).max(0.0) / whole_s,
        })
    }

    fn inside_ticks(&self, now: &HashMap<u32, Process>, inside: impl Fn(u32, &Process) -> bool) -> f64 {
        let used = now.iter().filter(|(pid, p)| inside(**pid, p)).map(|(pid, p)| {
            let before = self.processes.get(pid).filter(|b| b.started == p.started).map_or(0, |b| b.all_ticks());
            p.all_ticks().saturating_sub(before)
        });
        used.sum::<u64>() as f64
    }
}

/// CPU time of children that were waited for.
fn children_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let times = [usage.user_time(), usage.system_time()];
    Ok(times.iter().map(|t| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_and_neighbours_each_disturb() {
        let calm = Disturbance { steal_share: 0.01, outside_share: 0.05, steal_of_work: 0.05 };
        assert!(!calm.is_too_much());
        assert!(Disturbance { steal_share: 0.05, ..calm }.is_too_much());
        assert!(Disturbance { outside_share: 0.5, ..calm }.is_too_much());
        assert!(Disturbance { steal_of_work: 0.2, ..calm }.is_too_much());
    }

    #[test]
    fn a_verdict_is_excused_by_what_was_measured_alone() {
        let stolen = Disturbance { steal_share: 0.05, ..Disturbance::default() };
        let beside = Disturbance { outside_share: 0.5, ..Disturbance::default() };
        assert!(stolen.is_what_is_said("cpu-steal") && beside.is_what_is_said("run-queue-wait"));
        assert!(!stolen.is_what_is_said("run-queue-wait") && !beside.is_what_is_said("cpu-steal"));
        assert!(!stolen.is_what_is_said("hot-code") && !Disturbance::default().is_what_is_said("cpu-steal"));
    }

    #[test]
    fn a_reused_process_id_counts_from_its_own_start() {
        let process = |ticks, started| Process { kernel_thread: false, ticks, children_ticks: 0, started };
        let before = HashMap::from([(1, process(100, 5)), (2, process(50, 6))]);
        let now = HashMap::from([(1, process(130, 5)), (2, process(7, 99)), (3, process(1000, 7))]);
        let watch = Watch { began: Instant::now(), host: Host::default(), processes: before, children_s: 0.0 };
        assert_eq!(watch.inside_ticks(&now, |pid, _| pid != 3), 37.0);
    }
}
