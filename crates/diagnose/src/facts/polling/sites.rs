// SPDX-License-Identifier: Apache-2.0
//! Many threads of one process that ask by the same call, judged as if they were one: what each of them costs is too
//! little to see, in samples and in CPU time, and the sum is what their process pays.

use std::collections::{BTreeMap, BTreeSet};

use super::{Spin, View, others};
use crate::facts::calls::{Calls, Windows};
use crate::facts::profile::Place;

/// Threads from which on they are many: fewer are told one by one.
const MANY: usize = 4;

/// The groups of threads that are many.
pub(super) fn sites(view: &View<'_>, threads: &[Spin]) -> Vec<Spin> {
    let mut groups: BTreeMap<(u32, &str), Vec<&Spin>> = BTreeMap::new();
    for spin in threads.iter().filter(|s| !s.syscall.is_empty()) {
        groups.entry((spin.pid, &spin.syscall)).or_default().push(spin);
    }
    groups.into_values().filter(|group| group.len() >= MANY).map(|group| site(view, &group)).collect()
}

/// One group under the name of its costliest thread.
fn site(view: &View<'_>, group: &[&Spin]) -> Spin {
    let first = group[0];
    let tids: BTreeSet<u32> = group.iter().map(|s| s.tid).collect();
    let is_one = |pid: u32, tid: u32| pid == first.pid && tids.contains(&tid);
    let calls = merged_calls(view.calls, &is_one, (first.pid, first.tid));
    let mut places: BTreeMap<Place, u64> = BTreeMap::new();
    for (place, weight) in view.places.iter().filter(|(place, _)| is_one(place.pid, place.tid)) {
        *places.entry(Place { tid: first.tid, ..place.clone() }).or_default() += weight;
    }
    let together = View {
        threads: view.threads.clone(),
        profile: view.profile,
        places: &places,
        stacks: view.stacks.clone(),
        others: others(&calls),
        calls: &calls,
        length_ns: view.length_ns,
        together: group.len(),
    };
    together.spin(Spin {
        pid: first.pid,
        tid: first.tid,
        threads: group.len(),
        comm: first.comm.clone(),
        cpu_ns: group.iter().map(|s| s.cpu_ns).sum(),
        samples: group.iter().map(|s| s.samples).sum(),
        voluntary_switches: group.iter().map(|s| s.voluntary_switches).sum(),
        ..Spin::default()
    })
}

/// The calls of a process, those of these threads as if `tid` had made them all; those of its other threads stay theirs.
fn merged_calls(calls: &Calls, is_one: &impl Fn(u32, u32) -> bool, (pid, tid): (u32, u32)) -> Calls {
    let of_process = (pid, 0, i32::MIN)..=(pid, u32::MAX, i32::MAX);
    let name = |(pid, thread, number): (u32, u32, i32)| (pid, if is_one(pid, thread) { tid } else { thread }, number);
    let mut merged = Calls {
        sampled: BTreeMap::new(),
        counted: BTreeMap::new(),
        windows: Windows { ..calls.windows },
        useful_per_second: calls.useful_per_second.clone(),
    };
    for (key, sampled) in calls.sampled.range(of_process.clone()) {
        let into = merged.sampled.entry(name(*key));
        into.and_modify(|s| s.merge(sampled)).or_insert_with(|| sampled.clone());
    }
    for (key, counted) in calls.counted.range(of_process) {
        let into = merged.counted.entry(name(*key));
        into.and_modify(|c| c.merge(counted)).or_insert_with(|| counted.clone());
    }
    merged
}
