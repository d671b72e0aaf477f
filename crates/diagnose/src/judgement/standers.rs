// SPDX-License-Identifier: Apache-2.0
//! Where the threads stand that have the requests in hand which hang; and whether they wait for each other.

use std::collections::BTreeMap;

use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::facts::standers::{Place, Stander, Standers};
use crate::judgement::hung::{A_GOOD_PART, AS_MANY, Hung};
use crate::statistics::ratio;
use crate::walk::LOCK;
use crate::wording::{count, plural, seconds, short};

/// In what threads stand, from where, and for how long: "7 threads stand in futex (lock), called from debit, for up to 4.0 s".
fn words(case: &Case, place: &Place<'_>) -> String {
    let (threads, first) = (place.threads.len(), place.threads[0]);
    let stand = if threads == 1 { "stands" } else { "stand" };
    let longest = how_long(case, first.wait_ns, if threads == 1 { "" } else { "up to " });
    let (call, from) = (first.who.call_words(), called_from(&place.from));
    format!("{} {stand} in {call}{from}, {longest}", plural(threads, "thread"))
}

/// Of a capture, as long as that: it began before, and nobody knows when.
const ALL_OF_IT: f64 = 0.98;

/// For how long a thread has been standing, in words.
pub(crate) fn how_long(case: &Case, ns: f64, up_to: &str) -> String {
    match ns >= case.length_ns() * ALL_OF_IT {
        true => format!("for {up_to}all of the capture"),
        false => format!("for {up_to}{}", seconds(ns / 1e9)),
    }
}

/// Functions as words; empty = unknown.
pub(crate) fn called_from(functions: &[String]) -> String {
    let all: Vec<String> = functions.iter().take(3).map(|name| short(name)).collect();
    if all.is_empty() { String::new() } else { format!(", called from {}", all.join(" <- ")) }
}

/// Where most threads stand that have requests in hand which hang, in words; none = that is not seen.
pub(crate) fn of_those_in_hand(case: &Case, hung: &Hung) -> Option<String> {
    let (standers, stacks) = (case.fact::<Standers>().ok()?, case.fact::<Stacks>().ok()?);
    let all = standers.places(&stacks);
    let first = all.first().filter(|place| place.requests() >= (hung.requests * A_GOOD_PART).max(1.0))?;
    let in_hand = if first.threads.len() == 1 { " that has them in hand" } else { " that have them in hand" };
    Some(words(case, first).replacen(" stand", &format!("{in_hand} stand"), 1))
}

/// Places that are told.
const TOLD: usize = 3;

/// Where requests that hang stand, as a sentence, if that is seen: in the hands of threads that have read them; before locks; or
/// where about as many threads stand as there are requests.
pub(crate) fn sentence(case: &Case, hung: &Hung) -> Option<String> {
    let (standers, stacks) = (case.fact::<Standers>().ok()?, case.fact::<Stacks>().ok()?);
    let all = standers.places(&stacks);
    let in_hand: Vec<&Place<'_>> = all.iter().filter(|place| place.requests() > 0.0).collect();
    let requests: f64 = in_hand.iter().map(|place| place.requests()).sum();
    if requests >= (hung.requests * A_GOOD_PART).max(1.0) {
        let told: Vec<String> = in_hand.iter().take(TOLD).map(|place| words(case, place)).collect();
        return Some(format!(
            "Of these, {} are in the hands of threads that stand: {}.",
            count(requests),
            told.join("; ")
        ));
    }
    let is_many = |place: &&Place<'_>| {
        let threads = place.threads.len() as f64;
        let is_lock = place.threads[0].who.fd_kind == LOCK;
        is_lock && threads >= hung.requests * A_GOOD_PART || AS_MANY.contains(&ratio(threads, hung.requests))
    };
    let many: Vec<String> = all.iter().filter(is_many).take(TOLD).map(|place| words(case, place)).collect();
    (!many.is_empty()).then(|| format!("Meanwhile {}.", many.join("; ")))
}

/// Threads of which each stands before a mutex that the next one has, and the last before one of the first: none of them ever goes on.
pub(crate) fn circle(standers: &Standers) -> Option<Vec<&Stander>> {
    let by_tid: BTreeMap<u32, &Stander> = standers.all.iter().map(|stander| (stander.tid, stander)).collect();
    let next = |stander: &Stander| by_tid.get(&stander.owner?).copied();
    standers.all.iter().find_map(|first| {
        let mut circle = vec![first];
        while let Some(stander) = next(circle[circle.len() - 1]) {
            if stander.tid == first.tid {
                return Some(circle);
            }
            if circle.iter().any(|seen| seen.tid == stander.tid) {
                return None; // it stands before the circle, not in it
            }
            circle.push(stander);
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::hung::look;
    use crate::judgement::hung::tests::{EPOLL, text};
    use recording::text::parse;

    const FRAMES: &str = "frame id=1 symbol=pthread_mutex_lock module=/lib/libc.so.6 kind=native
        frame id=2 symbol=debit module=/svc kind=native
        frame id=3 symbol=credit module=/svc kind=native
        frame id=4 symbol=pthread_cond_wait module=/lib/libc.so.6 kind=native
        stack id=1 frames=[1,2] complete=true
        stack id=2 frames=[1,3] complete=true
        stack id=3 frames=[4,3] complete=true\n";

    fn said(rows: &str) -> Option<String> {
        let recording = parse(&text(&[("loop", EPOLL)], &format!("{FRAMES}{rows}"))).unwrap();
        let case = Case::new(&recording);
        sentence(&case, &look(&case).unwrap())
    }

    fn stands(tid: u32, stack: u32, more: &str) -> String {
        let value = if stack == 3 { 7 } else { 2 };
        format!(
            "standing pid=1 tid={tid} comm=w wait_ns={}e8 syscall=202 args=[{},128,{value},0] user_stack={stack} {more}\n",
            20 + tid,
            stack * 64
        )
    }

    #[test]
    fn those_that_have_read_the_requests() {
        let rows: String = (2..9).map(|tid| stands(tid, 3, "requests=1")).collect();
        let told = "Of these, 7 are in the hands of threads that stand: 7 threads stand in futex, called from credit, for up to 2.8 s.";
        assert_eq!(said(&rows).unwrap(), told);
        let idle: String = (2..60).map(|tid| stands(tid, 3, "")).collect();
        assert_eq!(said(&idle), None, "a pool without work");
    }

    #[test]
    fn those_that_stand_before_locks_or_are_as_many() {
        let locks: String = (2..9).map(|tid| stands(tid, 1 + tid % 2, "")).collect();
        assert_eq!(said(&locks), None, "three of twenty at each place");
        let one: String = (2..9).map(|tid| stands(tid, 1, "")).collect();
        assert!(said(&one).unwrap().starts_with("Meanwhile 7 threads stand in futex (lock), called from debit"));
        let as_many: String = (2..22).map(|tid| stands(tid, 3, "")).collect();
        assert!(said(&as_many).unwrap().starts_with("Meanwhile 20 threads stand in futex, called from credit"));
    }

    fn circle_of(owners: &[(u32, u32)]) -> Option<Vec<u32>> {
        let rows: String = owners.iter().map(|(tid, owner)| stands(*tid, 1, &format!("owner={owner}"))).collect();
        let recording = parse(&text(&[("loop", EPOLL)], &format!("{FRAMES}{rows}"))).unwrap();
        let standers = Case::new(&recording).fact::<Standers>().unwrap();
        circle(&standers).map(|circle| circle.iter().map(|stander| stander.tid).collect())
    }

    #[test]
    fn threads_that_wait_for_each_other() {
        assert_eq!(circle_of(&[(2, 3), (3, 4)]), None, "the last one may go on");
        assert_eq!(circle_of(&[(2, 3), (3, 4), (4, 3)]), Some(vec![3, 4]), "behind which another stands");
        assert_eq!(circle_of(&[(5, 5)]), Some(vec![5]), "a lock that it has itself");
    }
}
