// SPDX-License-Identifier: Apache-2.0
//! Threads that stand before mutexes which are never given back, who has these, and whether requests hang for that.

use std::collections::BTreeMap;

use super::hung::{A_GOOD_PART, ALL_THE_TIME, AS_MANY, Hung, NEARLY_ALL, Others, SEVERAL};
use crate::case::Case;
use crate::facts::standers::{Stander, Standers};
use crate::ledger::threads::Threads;
use crate::statistics::ratio;
use crate::walk::{kind_of_thread, name};
use crate::wording::{plural, seconds};

/// Who has a mutex that others stand before.
pub(crate) enum Keeper<'s> {
    /// It stands in something that is not work.
    Stands(&'s Stander),
    /// It computed for the whole of the capture.
    Runs { pid: u32, tid: u32, comm: String },
}

impl Keeper<'_> {
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Keeper::Stands(stander) => stander.who.pid,
            Keeper::Runs { pid, .. } => *pid,
        }
    }

    fn tid(&self) -> u32 {
        match self {
            Keeper::Stands(stander) => stander.tid,
            Keeper::Runs { tid, .. } => *tid,
        }
    }

    pub(crate) fn comm(&self) -> &str {
        match self {
            Keeper::Stands(stander) => &stander.who.comm,
            Keeper::Runs { comm, .. } => comm,
        }
    }

    /// `cron/4711`, by its thread id.
    pub(crate) fn name(&self) -> String {
        name(self.comm(), self.tid())
    }

    /// What it does, with "which" before it.
    pub(crate) fn does(&self) -> String {
        match self {
            Keeper::Stands(stander) => format!("stands in {}", stander.who.call_words()),
            Keeper::Runs { .. } => "computes all the time".into(),
        }
    }
}

/// Who keeps whom.
pub(crate) struct Deadlock<'s> {
    /// Each stands before a mutex that the next has, the last before one of the first; or one alone, whose own wait is for something else.
    pub keepers: Vec<Keeper<'s>>,
    /// It is a circle.
    pub is_circle: bool,
    /// Threads that stand before a mutex of these, or behind one that does; those of the circle among them.
    pub threads: usize,
    /// Requests that any of them has in hand, as far as that was seen.
    pub requests: f64,
    /// Threads of the same processes that stand elsewhere: they may have the requests that hang.
    elsewhere: usize,
    /// The first thread of a process is one of them, as of one that serves by a loop.
    has_first: bool,
}

/// The one behind which most threads stand; circles before all others.
pub(crate) fn look<'s>(case: &Case, standers: &'s Standers) -> Option<Deadlock<'s>> {
    let circles = circles(standers);
    let is_circle = !circles.is_empty();
    let all: Vec<Vec<Keeper<'_>>> = match is_circle {
        true => circles.into_iter().map(|circle| circle.into_iter().map(Keeper::Stands).collect()).collect(),
        false => keepers(case, standers).into_iter().map(|keeper| vec![keeper]).collect(),
    };
    let waiting = Waiting::of(standers);
    let with_those_behind = all.into_iter().map(|keepers| (waiting.behind(&keepers), keepers));
    let (behind, keepers) = with_those_behind.max_by_key(|(behind, _)| behind.len())?;
    Some(Deadlock::of(standers, &behind, keepers, is_circle))
}

/// Threads that have a mutex before which others stand, and stand in something else themselves, which is not work, or compute.
fn keepers<'s>(case: &Case, standers: &'s Standers) -> Vec<Keeper<'s>> {
    let mut owners: Vec<(u32, u32)> = standers.all.iter().filter_map(|one| Some((one.owner?, one.who.pid))).collect();
    owners.sort_unstable();
    owners.dedup();
    let by_tid: BTreeMap<u32, &Stander> = standers.all.iter().map(|stander| (stander.tid, stander)).collect();
    let keeper = |(tid, pid): (u32, u32)| match by_tid.get(&tid) {
        Some(stander) => (stander.owner.is_none() && !stander.is_for_work).then_some(Keeper::Stands(stander)),
        None => running(case, pid, tid),
    };
    owners.into_iter().filter_map(keeper).collect()
}

fn running<'s>(case: &Case, pid: u32, tid: u32) -> Option<Keeper<'s>> {
    let ledger = case.fact::<Threads>().ok()?;
    let thread = ledger.threads.iter().find(|thread| (thread.pid, thread.tid) == (pid, tid))?;
    let runs = thread.lines.demand_ns() >= case.length_ns() * ALL_THE_TIME;
    runs.then(|| Keeper::Runs { pid, tid, comm: kind_of_thread(&thread.comm) })
}

/// Threads of which each stands before a mutex that the next one has, and the last before one of the first: none of them ever goes on.
fn circles(standers: &Standers) -> Vec<Vec<&Stander>> {
    let by_tid: BTreeMap<u32, &Stander> = standers.all.iter().map(|stander| (stander.tid, stander)).collect();
    let mut seen_from: BTreeMap<u32, u32> = BTreeMap::new();
    let mut circles = Vec::new();
    for first in by_tid.values() {
        let (mut way, mut next) = (Vec::new(), Some(*first));
        while let Some(stander) = next.filter(|stander| !seen_from.contains_key(&stander.tid)) {
            seen_from.insert(stander.tid, first.tid);
            way.push(stander);
            next = stander.owner.and_then(|owner| by_tid.get(&owner).copied());
        }
        // Whoever was met before on this way is where a circle begins; else the way led to one that is known, or to nobody.
        if let Some(met) = next.filter(|stander| seen_from.get(&stander.tid) == Some(&first.tid)) {
            circles.push(way.into_iter().skip_while(|stander| stander.tid != met.tid).collect());
        }
    }
    circles
}

/// Threads that stand before the mutexes of each.
struct Waiting<'s>(BTreeMap<u32, Vec<&'s Stander>>);

impl<'s> Waiting<'s> {
    fn of(standers: &'s Standers) -> Self {
        let mut by_owner: BTreeMap<u32, Vec<&Stander>> = BTreeMap::new();
        for stander in &standers.all {
            stander.owner.into_iter().for_each(|owner| by_owner.entry(owner).or_default().push(stander));
        }
        Self(by_owner)
    }

    /// Those that wait, at once or by way of others, for a mutex of a keeper, by thread id.
    fn behind(&self, keepers: &[Keeper<'_>]) -> BTreeMap<u32, &'s Stander> {
        let mut behind: BTreeMap<u32, &Stander> = BTreeMap::new();
        let mut owners: Vec<u32> = keepers.iter().map(Keeper::tid).collect();
        while let Some(owner) = owners.pop() {
            for stander in self.0.get(&owner).into_iter().flatten() {
                if behind.insert(stander.tid, stander).is_none() {
                    owners.push(stander.tid);
                }
            }
        }
        behind
    }
}

impl<'s> Deadlock<'s> {
    fn of(standers: &Standers, behind: &BTreeMap<u32, &Stander>, keepers: Vec<Keeper<'s>>, is_circle: bool) -> Self {
        let is_elsewhere = |stander: &&Stander| {
            let is_own = keepers.iter().any(|keeper| keeper.pid() == stander.who.pid);
            let is_keeper = keepers.iter().any(|keeper| keeper.tid() == stander.tid);
            is_own && !is_keeper && !stander.is_for_work && !behind.contains_key(&stander.tid)
        };
        Self {
            is_circle,
            threads: behind.len(),
            requests: behind.values().map(|stander| stander.requests).sum(),
            elsewhere: standers.all.iter().filter(is_elsewhere).count(),
            has_first: behind.values().any(|stander| stander.tid == stander.who.pid),
            keepers,
        }
    }

    /// Whether that is why requests hang. Long polls hang beside threads of the household that wait for each other: either the threads have
    /// been seen to read the requests, or they are as many as those, and no others are; or a loop stands there that reads for all.
    pub(crate) fn keeps(&self, hung: &Hung) -> bool {
        // One or two may be long polls, while somebody has a mutex for long.
        if hung.requests < if self.is_circle { ONE } else { SEVERAL } {
            return false;
        }
        let read = hung.requests - hung.unread;
        let as_many = |threads: usize| AS_MANY.contains(&ratio(threads as f64, read));
        let loop_stands =
            self.has_first && hung.others == Others::Nobody && hung.unread + 1.0 >= hung.requests * NEARLY_ALL;
        self.requests >= (hung.requests * A_GOOD_PART).max(ONE)
            || as_many(self.threads) && !as_many(self.elsewhere)
            || loop_stands
    }

    /// In a few words.
    pub(crate) fn short(&self) -> String {
        let first = &self.keepers[0];
        match (self.is_circle, self.keepers.len()) {
            (true, 1) => format!("thread {} stands before a mutex that it has itself", first.name()),
            (true, 2) => "two threads each stand before a mutex that the other has, a deadlock".into(),
            (true, n) => format!("{n} threads stand before each other's mutexes in a circle, a deadlock"),
            (false, _) => {
                let (threads, stand) =
                    (plural(self.threads, "thread"), if self.threads == 1 { "stands" } else { "stand" });
                format!("{threads} {stand} before a mutex that {} has, which {}", first.name(), first.does())
            }
        }
    }
}

/// A request at a time, on average over looks that may have begun before it hung.
const ONE: f64 = 0.75;

/// For how long a thread has been standing, in words.
pub(crate) fn how_long(case: &Case, ns: f64, up_to: &str) -> String {
    // It began before, and nobody knows when.
    const ALL_OF_IT: f64 = 0.98;
    match ns >= case.length_ns() * ALL_OF_IT {
        true => format!("for {up_to}all of the capture"),
        false => format!("for {up_to}{}", seconds(ns / 1e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn circles_of(owners: &[(u32, u32)]) -> Vec<Vec<u32>> {
        let all = owners.iter().map(|(tid, owner)| stander(*tid, Some(*owner))).collect();
        circles(&Standers { all }).iter().map(|circle| circle.iter().map(|stander| stander.tid).collect()).collect()
    }

    fn stander(tid: u32, owner: Option<u32>) -> Stander {
        let recording = parse("meta host.arch=x86_64 length_ns=4e9\nstanding pid=1 comm=w syscall=202").unwrap();
        let one = Case::new(&recording).fact::<Standers>().unwrap().all[0].clone();
        Stander { tid, owner, ..one }
    }

    #[test]
    fn threads_that_wait_for_each_other() {
        assert!(circles_of(&[(2, 3), (3, 4)]).is_empty(), "the last one may go on");
        assert_eq!(circles_of(&[(2, 3), (3, 4), (4, 3), (9, 4)]), [[3, 4]], "behind which others stand");
        assert_eq!(circles_of(&[(5, 5)]), [[5]], "a mutex that it has itself");
        assert_eq!(circles_of(&[(2, 3), (3, 2), (7, 8), (8, 7)]), [[2, 3], [7, 8]]);
    }

    /// So many requests hang, of which so many lie unread; two threads wait for each other, others behind them, and others elsewhere.
    fn keeps(requests: f64, unread: f64, behind: u32, elsewhere: u32) -> bool {
        let mut all = vec![stander(2, Some(3)), stander(3, Some(2))];
        all.extend((0..behind).map(|nth| stander(10 + nth, Some(2))));
        all.extend((0..elsewhere).map(|nth| stander(100 + nth, None)));
        let standers = Standers { all };
        let recording = parse("meta length_ns=4e9").unwrap();
        let hung = Hung { others: Others::Answered, requests, owed_ns: 5e9, unread };
        look(&Case::new(&recording), &standers).unwrap().keeps(&hung)
    }

    #[test]
    fn requests_that_hang_for_a_deadlock_and_long_polls_beside_one() {
        assert!(keeps(10.0, 0.0, 8, 0), "a thread for each");
        assert!(keeps(14.0, 6.0, 6, 1), "a pool, and a queue before it");
        assert!(keeps(2.0, 0.0, 0, 6), "two, and a pool without work");
        for (polls, of_household) in [(10.0, 0), (6.0, 0), (3.0, 0), (1.0, 0), (2.0, 0), (4.0, 1)] {
            assert!(!keeps(polls, 0.0, of_household, polls as u32), "{polls} long polls");
        }
    }
}
