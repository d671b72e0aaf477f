// SPDX-License-Identifier: Apache-2.0
//! Where the thread that serves all computes for long: told by samples that fell into answers which took it long, if enough did.

use std::collections::{BTreeMap, HashMap};

use recording::tables::{Request, Sample};

use crate::case::Case;
use crate::facts::profile::{self, Function, Profile};
use crate::facts::stacks::{Code, Stacks};
use crate::judgement::waits_for_turn::long_ones;
use crate::runtimes;
use crate::runtimes::collectors::{Collector, Program};
use crate::statistics::share;
use crate::syscall::{Family, family};

/// Samples that are enough to tell.
const ENOUGH: usize = 5;

/// Of the samples in long answers: a tenth may be what goes on beside them, as a collector does.
const NEARLY_ALL: f64 = 0.8;

/// Of the other samples: a long answer that had begun when the capture did is among them.
const NEXT_TO_NONE: f64 = 0.2;

/// What it computes for long.
pub(super) struct Place {
    /// All of it: what is to be taken elsewhere.
    pub whole: String,
    /// The function in it that has most of the time, if that is another one.
    pub mostly: Option<String>,
}

/// The function with most of that time, if it has a name and is code that somebody can take elsewhere (not the runtime's own), and
/// the one that called it in long answers alone; or the system call that has most of it.
pub(super) fn name(case: &Case, thread: (u32, u32)) -> Option<Place> {
    let (long, others) = samples(case, thread);
    if let Some(call) = call(case, &long) {
        return Some(Place { whole: format!("the call of {call}"), mostly: None });
    }
    let (profile, stacks) = (case.fact::<Profile>().ok()?, case.fact::<Stacks>().ok()?);
    let [long, others] = [Work::of(&profile, &stacks, &long), Work::of(&profile, &stacks, &others)];
    let credited: u64 = long.functions.iter().map(|f| f.credited).sum();
    let most = long.functions.iter().max_by_key(|f| f.credited);
    let most = most.filter(|f| f.named && f.part != runtimes::Part::Runtime && f.name != ALL_OF_IT);
    let whole = long.has_alone(&others, &profile, &stacks);
    let mostly = most.filter(|f| whole.as_ref().is_some_and(|whole| *whole != f.name) && 2 * f.credited >= credited);
    let mostly = mostly.map(|f| f.name.clone());
    Some(Place { whole: whole.or(most.map(|f| f.name.clone()))?, mostly })
}

/// Where the compiler put all into one function, the loop is in it as well.
const ALL_OF_IT: &str = "main";

/// Of the samples in long answers, those in which the program stands still for its collector, if that is what makes them long.
const MOSTLY: f64 = 0.5;

/// The collector of garbage, if it has most of that time: whoever's answer it falls into, it is nobody's work.
pub(super) fn collector(case: &Case, thread: (u32, u32)) -> Option<&'static Collector> {
    let (long, _) = samples(case, thread);
    let stacks = case.fact::<Stacks>().ok()?;
    let pauses = |row: &Sample| {
        let names = stacks.user(row.stack).map(|code| code.symbol.as_str());
        Collector::at(&row.comm, names)
            .filter(|(_, program)| *program == Program::Pauses)
            .map(|(collector, _)| collector)
    };
    let in_it: Vec<&'static Collector> = long.iter().filter_map(|row| pauses(row)).collect();
    let is_it = in_it.len() >= ENOUGH && in_it.len() as f64 >= long.len() as f64 * MOSTLY;
    in_it.first().copied().filter(|_| is_it)
}

/// What a thread did outside the kernel, by some of its samples.
struct Work {
    places: BTreeMap<profile::Place, u64>,
    functions: Vec<Function>,
    samples: u64,
}

impl Work {
    fn of(profile: &Profile, stacks: &Stacks, rows: &[&Sample]) -> Self {
        let mut places: BTreeMap<profile::Place, u64> = BTreeMap::new();
        for row in rows.iter().filter(|row| !row.kernel) {
            *places.entry(profile::Place::of(row)).or_default() += u64::from(row.weight.max(1));
        }
        let functions = profile.functions_of(stacks, places.iter().map(|(place, weight)| (place, *weight)));
        let samples = places.values().sum();
        Work { places, functions, samples }
    }

    /// On what part of the samples' stacks each function is, by its name.
    fn parts(&self) -> HashMap<(&str, &str), f64> {
        let part = |f: &Function| share(f.inclusive as f64, self.samples as f64);
        self.functions.iter().map(|f| ((f.module.as_str(), f.name.as_str()), part(f))).collect()
    }

    /// The innermost function of the program's own that is on nearly all of these stacks and on next to none of the others: what long
    /// answers do and others do not. A leaf says less (who walks a table for whom?), and what dispatches nothing.
    fn has_alone(&self, others: &Self, profile: &Profile, stacks: &Stacks) -> Option<String> {
        if (others.samples as usize) < ENOUGH {
            return None;
        }
        let (with, without) = (self.parts(), others.parts());
        let is_it = |code: &&Code| {
            let name = profile.name(code);
            let part = |of: &HashMap<(&str, &str), f64>| of.get(&(code.file(), name.as_str())).copied().unwrap_or(0.0);
            let is_own = code.part == runtimes::Part::Own && !code.symbol.is_empty();
            is_own && part(&with) >= NEARLY_ALL && part(&without) <= NEXT_TO_NONE
        };
        // What is on nearly all of them is on one of a few.
        let mut heaviest: Vec<(&profile::Place, &u64)> = self.places.iter().collect();
        heaviest.sort_by_key(|(_, weight)| std::cmp::Reverse(**weight));
        let found = heaviest.into_iter().take(ENOUGH).find_map(|(place, _)| stacks.callers(place.stack).find(is_it));
        found.map(|code| profile.name(code))
    }
}

/// The thread's samples in long answers, and the others; all and none, where too few lie there.
fn samples<'r>(case: &'r Case, (pid, tid): (u32, u32)) -> (Vec<&'r Sample>, Vec<&'r Sample>) {
    let answered: Vec<&Request> =
        case.recording.rows::<Request>().iter().filter(|row| row.is_accepted() && row.ended_tid == tid).collect();
    let long = long_ones(&answered);
    let in_long = |row: &&Sample| {
        let next = long.partition_point(|span| span.1 < row.t_ns);
        long.get(next).is_some_and(|span| span.0 <= row.t_ns)
    };
    let all: Vec<&Sample> =
        case.recording.rows::<Sample>().iter().filter(|row| (row.pid, row.tid) == (pid, tid)).collect();
    let (some, others): (Vec<&Sample>, Vec<&Sample>) = all.iter().partition(|row| in_long(row));
    if some.len() >= ENOUGH { (some, others) } else { (all, Vec::new()) }
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

    /// When one answer of 100 ms in each second ends, ms; and its row.
    fn answers() -> impl Iterator<Item = (u32, String)> {
        (0..9).map(|second| {
            let (read, end) = (second * 1000 + 100, second * 1000 + 200);
            let row = format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={read}e6 began_tid=1 read_ns={read}e6 ended_tid=1\n"
            );
            (end, row)
        })
    }

    /// In long answers the thread is in `call`; otherwise it is in another function.
    fn told(call: i32) -> Option<String> {
        let mut text = "meta host.arch=x86_64 length_ns=9e9 target.pids=[1] target.sample_hz=100
            frame id=1 symbol=serves module=/srv/loop kind=native
            stack id=1 frames=[1] complete=true\n"
            .to_string();
        for (end, row) in answers() {
            let _ = writeln!(
                text,
                "{row}
                 sample t_ns={}e6 pid=1 tid=1 kernel=true syscall={call} stack=1 weight=1
                 sample t_ns={}e6 pid=1 tid=1 syscall=-1 stack=1 weight=1
                 sample t_ns={}e6 pid=1 tid=1 syscall=-1 stack=1 weight=1",
                end - 50,
                end + 50,
                end + 60
            );
        }
        let recording = parse(&text).unwrap();
        name(&Case::new(&recording), (1, 1)).map(|place| place.whole)
    }

    #[test]
    fn the_call_in_which_long_answers_are() {
        assert_eq!(told(56).as_deref(), Some("the call of clone"));
        assert_ne!(told(44).as_deref(), Some("the call of sendto"), "who sends is no computation");
    }

    /// Long answers walk a table for `report`, short ones for `lookup`; all of them in the loop.
    #[test]
    fn the_caller_that_only_long_answers_have() {
        let text = |others: usize| {
            let mut text = "meta host.arch=x86_64 length_ns=9e9 target.pids=[1] target.sample_hz=100
                frame id=1 symbol=walk module=/srv/loop kind=native
                frame id=2 symbol=report module=/srv/loop kind=native
                frame id=3 symbol=lookup module=/srv/loop kind=native
                frame id=4 symbol=dispatch module=/srv/loop kind=native
                stack id=1 frames=[1,2,4] complete=true
                stack id=2 frames=[1,3,4] complete=true\n"
                .to_string();
            for (end, row) in answers() {
                let _ = writeln!(text, "{row}sample t_ns={}e6 pid=1 tid=1 syscall=-1 stack=1 weight=1", end - 50);
            }
            (0..others).for_each(|at| {
                let _ = writeln!(text, "sample t_ns={}e6 pid=1 tid=1 syscall=-1 stack=2 weight=1", at * 1000 + 300);
            });
            text
        };
        let told = |text: String| {
            let place = name(&Case::new(&parse(&text).unwrap()), (1, 1)).unwrap();
            (place.whole, place.mostly)
        };
        assert_eq!(told(text(9)), ("report".into(), Some("walk".into())));
        assert_eq!(told(text(2)), ("walk".into(), None), "two samples are nothing to compare with");
    }
}
