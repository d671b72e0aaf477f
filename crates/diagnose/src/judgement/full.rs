// SPDX-License-Identifier: Apache-2.0
//! What is full with the target's own work: allowed CPUs, its quota, threads.

use crate::case::Case;
use crate::facts::limits::{Limits, ThreadUse};
use crate::facts::profile::Profile;
use crate::facts::serving::Serving;
use crate::facts::stacks::Stacks;
use crate::judgement::poller::poller;
use crate::runtimes::interpreters::{self, Interpreter};
use crate::statistics::share;
use crate::wording::plural;

/// Nine tenths: queues in front of a resource grow without bound on the way from there to full.
pub(crate) const FULL: f64 = 0.9;

/// A thread that wants a CPU all the time but gets it less than half of it waits more than it works.
const MIN_ON_CPU: f64 = 0.5;

/// Share of slices at one CPU before a service of many threads counts as running one at a time.
const STEADY: f64 = 0.75;

/// Share of samples with another thread at the same moment up to which threads may be said to run one at a time. Measured:
/// Ruby threads under their interpreter's lock 0 %, one goroutine that spins 3 %; a Java pool at 0.8 cores of two 39 %,
/// C++ threads on two full CPUs 96 %. A C pool whose requests came evenly spaced had 3 % at 0.97 cores: a load that leaves
/// gaps is none of a lock's, see [`Limits::one_at_a_time`].
const MAX_TOGETHER: f64 = 0.1;

/// Something that is full, and whose samples tell with what.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Full {
    /// In words, with its verb, `the CPUs it may use are`.
    pub what: String,
    /// The full threads; none = the target as a whole.
    pub threads: Vec<(u32, u32)>,
    /// Command name, where it is one thread.
    pub comm: String,
    /// How full.
    pub utilization: f64,
    /// Share of the target's CPU time that it is full of.
    pub of_target: f64,
    /// Measured, or only inferred from the shape of the load.
    pub certain: bool,
    /// It is the CPU quota of its cgroup.
    pub is_quota: bool,
}

impl Full {
    /// The one thread that is full, if it is one.
    pub fn thread(&self) -> Option<(u32, u32)> {
        self.threads.first().copied().filter(|_| self.threads.len() == 1)
    }

    /// Whether it is a thread that computes by itself while others serve: what it does, they do not wait for in turn.
    pub fn does_not_serve(&self, case: &Case) -> bool {
        let (Some(thread), Ok(serving)) = (self.thread(), case.fact::<Serving>()) else { return false };
        serving.is_aside(thread) && poller(case, self.thread()).is_none()
    }

    /// The interpreter that runs one thread at a time in it, if it is most of its time.
    pub fn interpreter(&self, case: &Case) -> Option<&'static Interpreter> {
        let (profile, stacks) = (case.fact::<Profile>().ok()?, case.fact::<Stacks>().ok()?);
        let (mut all, mut interpreted, mut found) = (0, 0, None);
        let inside = |at: (u32, u32)| self.threads.is_empty() || self.threads.contains(&at);
        for (place, &weight) in profile.places.iter().filter(|(place, _)| inside((place.pid, place.tid))) {
            all += weight;
            if let Some(interpreter) = interpreters::of(stacks.user(place.stack)) {
                interpreted += weight;
                found = Some(interpreter);
            }
        }
        found.filter(|_| interpreted * 2 >= all)
    }
}

/// The service's work is in one thread from here on.
const MOST: f64 = 0.6;

/// Of what is full, the target's own use: with less, somebody else fills it.
const OWN: f64 = 0.5;

/// What is full with most of the target's work: it can do no more of it.
pub(crate) fn at_capacity(limits: &Limits) -> Option<Full> {
    full(limits).into_iter().find(|f| f.of_target >= MOST)
}

/// Whether a service is at a limit: then it has a queue, and says so itself. A thread that computes beside those that serve is none.
pub(crate) fn is_at_capacity(case: &Case) -> bool {
    let full = case.fact::<Limits>().ok().and_then(|limits| at_capacity(&limits));
    full.is_some_and(|full| !full.does_not_serve(case))
}

/// Everything that is full with the target's own work, the widest first.
pub(crate) fn full(limits: &Limits) -> Vec<Full> {
    let whole = |what: &str, utilization: f64, certain: bool| Full {
        what: what.to_string(),
        utilization,
        of_target: 1.0,
        certain,
        ..Full::default()
    };
    let mut all = Vec::new();
    if let Some(u) = limits.allowed_cpus.filter(|u| *u >= FULL && limits.target_share.unwrap_or(0.0) >= OWN) {
        all.push(whole("the CPUs it may use are", u, true));
    }
    // Others of its group use the same one.
    let own_of_quota = |u: f64| limits.quota_cpus.map_or(1.0, |cpus| share(limits.cores, cpus * u));
    let quota = limits.quota.filter(|u| *u >= FULL && own_of_quota(*u) >= OWN);
    all.extend(quota.map(|u| Full { is_quota: true, ..whole("its CPU quota is", u, true) }));
    let threads: Vec<&ThreadUse> =
        limits.threads.iter().filter(|t| t.demand >= FULL && t.on_cpu >= MIN_ON_CPU).collect();
    if threads.len() > 1 {
        all.push(Full {
            what: format!("its {} are each", plural(threads.len(), "busiest thread")),
            threads: threads.iter().map(|t| (t.pid, t.tid)).collect(),
            utilization: threads.iter().map(|t| t.demand).fold(1.0, f64::min),
            of_target: threads.iter().map(|t| t.of_target).sum(),
            certain: true,
            ..Full::default()
        });
    }
    all.extend(threads.into_iter().map(|t| Full {
        what: format!("thread {} (tid {}) is", t.comm, t.tid),
        threads: vec![(t.pid, t.tid)],
        comm: t.comm.clone(),
        utilization: t.demand,
        of_target: t.of_target,
        certain: true,
        ..Full::default()
    }));
    let alone = limits.together.is_some_and(|share| share <= MAX_TOGETHER);
    if all.is_empty() && limits.one_at_a_time >= STEADY && alone {
        all.push(whole("the one thread it seems to run at a time is", 1.0, false));
    }
    all
}
