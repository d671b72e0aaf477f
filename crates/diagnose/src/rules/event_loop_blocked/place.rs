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

/// The system call in which most of the samples are. In one that waits for work nobody computes, and what is sent may be computed on
/// by the receiver's side of the kernel within the call.
fn call(case: &Case, samples: &[&Sample]) -> Option<String> {
    let mut by: BTreeMap<i32, u64> = BTreeMap::new();
    let in_calls = samples.iter().filter(|row| row.kernel && row.syscall >= 0);
    in_calls.for_each(|row| *by.entry(row.syscall).or_default() += u64::from(row.weight));
    let (number, most) = by.into_iter().max_by_key(|(_, weight)| *weight)?;
    let all: u64 = samples.iter().map(|row| u64::from(row.weight)).sum();
    let call = case.syscall(number);
    let serves = matches!(family(&call), Family::Poll | Family::Send | Family::Receive | Family::Accept);
    (2 * most >= all && !serves).then_some(call)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use recording::text::parse;

    /// One answer of 100 ms in each second, in which the thread is in `call`; otherwise it is in another function.
    fn told(call: i32) -> Option<String> {
        let mut text = "meta host.arch=x86_64 length_ns=9e9 target.pids=[1] target.sample_hz=100
            frame id=1 symbol=serves module=/srv/loop kind=native
            stack id=1 frames=[1] complete=true\n"
            .to_string();
        for at in 0..9 {
            let (read, end) = (at * 1000 + 100, at * 1000 + 200);
            let _ = writeln!(
                text,
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={read}e6 began_tid=1 read_ns={read}e6 ended_tid=1
                 sample t_ns={}e6 pid=1 tid=1 kernel=true syscall={call} stack=1 weight=1
                 sample t_ns={}e6 pid=1 tid=1 syscall=-1 stack=1 weight=1
                 sample t_ns={}e6 pid=1 tid=1 syscall=-1 stack=1 weight=1",
                end - 50,
                end + 50,
                end + 60
            );
        }
        let recording = parse(&text).unwrap();
        name(&Case::new(&recording), (1, 1))
    }

    #[test]
    fn the_call_in_which_long_answers_are() {
        assert_eq!(told(56).as_deref(), Some("the call of clone"));
        assert_ne!(told(44).as_deref(), Some("the call of sendto"), "who sends is no computation");
    }
}
