// SPDX-License-Identifier: Apache-2.0
//! How much of each process's run delay was a CPU quota's doing: an estimate, since the kernel counts throttled
//! time by cgroup and CPU only.
//!
//! A thread that is throttled stays runnable and its run delay goes on. While a CPU of a cgroup is throttled, all its
//! runnable threads there wait: their time is the cgroup's throttled time x the number of threads that were
//! runnable per CPU (at least one), and never more than their run delay. It is split among
//! the processes by their run delay. Exact where the threads are alike; a capture with BPF measures it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use recording::tables::Gap;

use crate::cgroup::{Level, Trees, quota_us};
use crate::host::online_cpus;
use crate::host_processes::{Difference, Snapshot};
use crate::proc::text;
use crate::target::Cgroups;

/// Cgroups looked at for a quota, and those with one whose counters are sampled, at most.
const CGROUPS: usize = 4096;
const SAMPLED: usize = 64;

/// A cgroup with a quota and the processes in it and below it.
struct Limited {
    level: Level,
    pids: BTreeSet<u32>,
    throttled_ns: u64,
}

/// The cgroups that can be throttled, and their counts at the start.
pub struct Throttled {
    limited: Vec<Limited>,
    cpus: usize,
}

impl Throttled {
    /// Finds the cgroups with a quota, above any process.
    pub fn start(root: &Path, snapshot: &Snapshot) -> Self {
        let trees = Trees::read(root);
        let mut found: BTreeMap<PathBuf, Option<Limited>> = BTreeMap::new();
        for (pid, seen) in &snapshot.processes {
            for level in trees.levels(&seen.membership, "cpu") {
                if !found.contains_key(&level.dir) && found.len() >= CGROUPS {
                    continue;
                }
                let limited = found.entry(level.dir.clone()).or_insert_with(|| Limited::of(level));
                if let Some(limited) = limited {
                    limited.pids.insert(*pid);
                }
            }
        }
        Self { limited: found.into_values().flatten().collect(), cpus: online_cpus(root).len().max(1) }
    }

    /// The cgroups with a quota, for the samplers, which keep their files open.
    pub fn cgroups(&self) -> Cgroups {
        let all = self.limited.iter().map(|limited| limited.level.clone());
        Cgroups { cpu: all.take(SAMPLED).collect(), ..Cgroups::default() }
    }

    /// Cgroups whose counters are not sampled.
    pub fn gap(&self) -> Option<Gap> {
        let left_out = self.limited.len().saturating_sub(SAMPLED);
        let why =
            format!("{left_out} more cgroups have a CPU quota; their counters are not sampled, name one with --cgroup");
        let part = left_out as f64 / self.limited.len().max(1) as f64;
        (left_out > 0).then(|| Gap::partial("cgroup/cpu", part, why))
    }

    /// Throttled time by process, ns, after `wall_ns`.
    pub fn end(&mut self, found: &Difference, wall_ns: u64) -> BTreeMap<u32, u64> {
        let mut shares: BTreeMap<u32, u64> = BTreeMap::new();
        for limited in &self.limited {
            let throttled_ns = throttled_ns(&limited.level).unwrap_or(0).saturating_sub(limited.throttled_ns);
            let mine = || found.ran.iter().filter(|ran| limited.pids.contains(&ran.pid));
            let delay_ns: u64 = mine().map(|ran| ran.run_delay_ns).sum();
            let cpu_ns: u64 = mine().map(|ran| ran.cpu_ns).sum();
            if throttled_ns == 0 || delay_ns == 0 || wall_ns == 0 {
                continue;
            }
            let runnable_per_cpu = (delay_ns + cpu_ns) as f64 / wall_ns as f64 / self.cpus as f64;
            let share = (throttled_ns as f64 * runnable_per_cpu.max(1.0) / delay_ns as f64).min(1.0);
            for ran in mine() {
                let ns = (ran.run_delay_ns as f64 * share) as u64;
                // Levels above one another throttle the same threads: the larger count holds.
                let known = shares.entry(ran.pid).or_default();
                *known = ns.max(*known);
            }
        }
        shares
    }
}

impl Limited {
    fn of(level: Level) -> Option<Self> {
        quota_us(&level)?;
        Some(Self { throttled_ns: throttled_ns(&level).unwrap_or(0), pids: BTreeSet::new(), level })
    }
}

/// Throttled time of a cgroup so far, summed over CPUs.
fn throttled_ns(level: &Level) -> Option<u64> {
    let stat = text(&level.dir.join("cpu.stat"))?;
    let (key, unit_ns) = if level.v2 { ("throttled_usec ", 1000) } else { ("throttled_time ", 1) };
    let value: u64 = stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())?;
    Some(value * unit_ns)
}
