// SPDX-License-Identifier: Apache-2.0
//! What the target may use: CPUs by affinity and cpuset, CPU time by quota, and the cgroups that say so.

use std::collections::BTreeSet;

use crate::cgroup::{self, Level, Membership, Trees};
use crate::host::online_cpus;
use crate::proc::{Proc, cpu_list, field, text};

/// Limits on the target's CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// CPUs that at least one of its threads may use, ascending.
    pub allowed_cpus: Vec<u32>,
    /// Tightest quota on the path to the root, in CPUs; none = no limit.
    pub quota_cpus: Option<f64>,
    /// The cgroup that sets the quota, else the target's own.
    pub cgroup: String,
}

impl Limits {
    /// Limits of these processes, whose cgroups are given in the same order; the quota is that of the
    /// first, the main one.
    pub fn of(proc: &Proc, trees: &Trees, pids: &[u32], memberships: &[Membership]) -> Self {
        let own = memberships.first().map(Membership::name).unwrap_or_default();
        let cpu = memberships.first().map(|main| trees.levels(main, "cpu")).unwrap_or_default();
        let quota = cgroup::tightest(&cpu);
        let mut allowed = BTreeSet::new();
        for (pid, membership) in pids.iter().zip(memberships) {
            let cpuset = cgroup::cpuset(&trees.levels(membership, "cpuset"));
            allowed.extend(within(affinity(proc, *pid), cpuset.unwrap_or_default()));
        }
        Self {
            allowed_cpus: within(allowed, online_cpus(proc.root())).into_iter().collect(),
            quota_cpus: quota.map(|(cpus, _)| cpus),
            cgroup: quota.map_or(own, |(_, level)| level.path.clone()),
        }
    }
}

/// CPUs that at least one thread of a process may use.
fn affinity(proc: &Proc, pid: u32) -> BTreeSet<u32> {
    let of_thread = |tid: u32| {
        let status = text(&proc.of(pid, &format!("task/{tid}/status"))).unwrap_or_default();
        cpu_list(field(&status, "Cpus_allowed_list").unwrap_or_default())
    };
    proc.tasks(pid).into_iter().flat_map(of_thread).collect()
}

/// What of `cpus` is in `limit`; an empty limit is an unknown one.
fn within(mut cpus: BTreeSet<u32>, limit: Vec<u32>) -> BTreeSet<u32> {
    cpus.retain(|cpu| limit.is_empty() || limit.contains(cpu));
    cpus
}

/// Levels followed at most, for each controller: they are sampled each second through open files.
const LEVELS: usize = 32;

/// Cgroups of the target by controller, each once, from the processes' own up to the root.
#[derive(Clone, Debug, Default)]
pub struct Cgroups {
    /// Where CPU quotas are.
    pub cpu: Vec<Level>,
    /// Where CPU use is counted, of version 1; the same as `cpu` on version 2.
    pub cpuacct: Vec<Level>,
    /// Where memory is limited.
    pub memory: Vec<Level>,
    /// Where the number of processes is limited.
    pub pids: Vec<Level>,
    /// The processes' own ones, of both versions, which may be frozen.
    pub freezer: Vec<Level>,
    /// How many levels were too many to follow, of the controller with most of them.
    pub left_out: usize,
}

impl Cgroups {
    /// Cgroups of these processes, those of the first ones if they are too many.
    pub fn of(trees: &Trees, memberships: &[Membership]) -> Self {
        let levels = |controller: &str| each_once(memberships.iter().flat_map(|m| trees.levels(m, controller)));
        let bounded = |controller: &str| levels(controller).into_iter().take(LEVELS).collect();
        Self {
            left_out: ["cpu", "memory", "pids"]
                .map(|of| levels(of).len().saturating_sub(LEVELS))
                .into_iter()
                .fold(0, usize::max),
            cpu: bounded("cpu"),
            cpuacct: bounded("cpuacct"),
            memory: bounded("memory"),
            pids: bounded("pids"),
            freezer: each_once(memberships.iter().flat_map(|m| trees.freezers(m)).take(LEVELS)),
        }
    }
}

fn each_once(levels: impl Iterator<Item = Level>) -> Vec<Level> {
    let mut all: Vec<Level> = Vec::new();
    for level in levels {
        if !all.contains(&level) {
            all.push(level);
        }
    }
    all
}
