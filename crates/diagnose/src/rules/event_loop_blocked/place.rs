// SPDX-License-Identifier: Apache-2.0
//! Where the thread that serves all computes for long: told by samples that fell into answers which took it long, if enough did.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::{Request, Sample};

use crate::case::Case;
use crate::facts::profile::{Place, Profile};
use crate::facts::stacks::Stacks;
use crate::judgement::waits_for_turn::long_ones;
use crate::runtimes;
use crate::syscall::{Family, family};

/// Samples that are enough to tell.
const ENOUGH: usize = 5;

/// The function with most of that time, if it has a name and is code that somebody can take elsewhere (not the runtime's own); or the
/// system call that has most of it.
pub(super) fn name(case: &Case, thread: (u32, u32)) -> Option<String> {
    let samples = samples(case, thread);
    if let Some(call) = call(case, &samples) {
        return Some(format!("the call of {call}"));
    }
    let (profile, stacks) = (case.fact::<Profile>().ok()?, case.fact::<Stacks>().ok()?);
    let seen: BTreeSet<u32> = samples.iter().map(|row| row.stack).collect();
    let of_thread = |place: &Place| (place.pid, place.tid) == thread && !place.kernel && seen.contains(&place.stack);
    let functions = profile.functions(&stacks, of_thread);
    functions
        .into_iter()
        .max_by_key(|f| f.credited)
        .filter(|f| f.named && f.part != runtimes::Part::Runtime)
        .map(|f| f.name)
}

/// The thread's samples in long answers; all of them, where too few lie there.
fn samples<'r>(case: &'r Case, (pid, tid): (u32, u32)) -> Vec<&'r Sample> {
    let answered: Vec<&Request> =
        case.recording.rows::<Request>().iter().filter(|row| row.is_accepted() && row.ended_tid == tid).collect();
    let long = long_ones(&answered);
    let in_long = |row: &&&Sample| {
        let next = long.partition_point(|span| span.1 < row.t_ns);
        long.get(next).is_some_and(|span| span.0 <= row.t_ns)
    };
    let all: Vec<&Sample> =
        case.recording.rows::<Sample>().iter().filter(|row| (row.pid, row.tid) == (pid, tid)).collect();
    let some: Vec<&Sample> = all.iter().filter(in_long).copied().collect();
    if some.len() >= ENOUGH { some } else { all }
}

/// The system call in which most of the samples are, but for one that waits for work.
fn call(case: &Case, samples: &[&Sample]) -> Option<String> {
    let mut by: BTreeMap<i32, u32> = BTreeMap::new();
    let in_calls = samples.iter().filter(|row| row.kernel && row.syscall >= 0);
    in_calls.for_each(|row| *by.entry(row.syscall).or_default() += row.weight);
    let (number, most) = by.into_iter().max_by_key(|(_, weight)| *weight)?;
    let all: u32 = samples.iter().map(|row| row.weight).sum();
    let call = case.syscall(number);
    (2 * most >= all && family(&call) != Family::Poll).then_some(call)
}
