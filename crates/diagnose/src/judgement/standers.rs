// SPDX-License-Identifier: Apache-2.0
//! Where the threads stand that have the requests in hand which hang.

use crate::case::Case;
use crate::facts::servers::Servers;
use crate::facts::stacks::Stacks;
use crate::facts::standers::{Place, Standers};
use crate::judgement::deadlocks::how_long;
use crate::judgement::hung::{A_GOOD_PART, AS_MANY, Hung, Others};
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::Threads;
use crate::phrases::chain;
use crate::statistics::ratio;
use crate::walk::{INNER, LOCK};
use crate::wording::{count, plural, short};

/// In what threads stand, from where, and for how long: "7 threads stand in futex (lock), called from debit, for up to 4.0 s".
fn words(case: &Case, place: &Place<'_>) -> String {
    let (threads, first) = (place.threads.len(), place.threads[0]);
    let stand = if threads == 1 { "stands" } else { "stand" };
    let is_server = case.fact::<Servers>().is_ok_and(|servers| servers.has(first.who.pid));
    let whose = if is_server { String::new() } else { format!(" of {}", first.who.name()) };
    let longest = how_long(case, first.wait_ns, if threads == 1 { "" } else { "up to " });
    let (call, from) = (first.who.call_words(), chain::from(place.from.iter().cloned()));
    format!("{}{whose} {stand} in {call}{from}, {longest}", plural(threads, "thread"))
}

/// Where most threads stand that have requests in hand which hang, in words; none = that is not seen.
pub(crate) fn of_those_in_hand(case: &Case, hung: &Hung) -> Option<String> {
    let (standers, stacks) = (case.fact::<Standers>().ok()?, case.fact::<Stacks>().ok()?);
    let all = standers.places(&stacks);
    let first = *in_hand(&all, hung).first()?;
    let who = match (first.requests() > 0.0, first.threads.len()) {
        (false, _) => "",
        (true, 1) => " that has them in hand",
        (true, _) => " that have them in hand",
    };
    Some(words(case, first).replacen(" stand", &format!("{who} stand"), 1))
}

/// Of all threads that serve: where so many stand, that is where the program stands.
const HALF: f64 = 0.5;

/// Where most of its threads stand, in words; none = they do not stand at one place, or wait for work there.
pub(crate) fn most(case: &Case) -> Option<String> {
    let (standers, stacks) = (case.fact::<Standers>().ok()?, case.fact::<Stacks>().ok()?);
    let (servers, ledger) = (case.fact::<Servers>().ok()?, case.fact::<Threads>().ok()?);
    let all = ledger.threads.iter().filter(|thread| thread.tid != 0 && servers.has(thread.pid)).count() as f64;
    let places = standers.places(&stacks);
    let most = places.iter().max_by_key(|place| place.threads.len())?;
    (most.threads.len() as f64 >= all * HALF && !most.from.is_empty()).then(|| words(case, most))
}

/// Places of threads that have read a good part of the requests which hang; or of a loop inside the loop that serves, if nobody is answered.
fn in_hand<'p, 's>(all: &'p [Place<'s>], hung: &Hung) -> Vec<&'p Place<'s>> {
    let requests: f64 = all.iter().map(|place| place.requests()).sum();
    if requests >= (hung.requests * A_GOOD_PART).max(1.0) {
        return all.iter().filter(|place| place.requests() > 0.0).collect();
    }
    let is_inner = |place: &&Place<'_>| place.threads[0].who.fd_kind == INNER;
    if hung.others == Others::Nobody { all.iter().filter(is_inner).collect() } else { Vec::new() }
}

/// Places that are told.
const TOLD: usize = 3;

/// Where requests that hang stand, as a sentence, if that is seen: in the hands of threads; before locks; or where about as many threads
/// stand as there are requests. Whoever stands elsewhere meanwhile may have what they wait for.
pub(crate) fn sentence(case: &Case, hung: &Hung) -> Option<String> {
    let (standers, stacks) = (case.fact::<Standers>().ok()?, case.fact::<Stacks>().ok()?);
    let all = standers.places(&stacks);
    let in_hand = in_hand(&all, hung);
    let requests: f64 = in_hand.iter().map(|place| place.requests()).sum();
    let told = if in_hand.is_empty() { as_many(&all, hung.requests) } else { in_hand };
    let is_told = |place: &&Place<'_>| told.iter().any(|one| std::ptr::eq(*one, *place));
    let others: Vec<&Place<'_>> = all.iter().filter(|place| !is_told(place)).collect();
    let first = list(case, &told)?;
    let besides = list(case, &others).map_or_else(String::new, |others| format!(" Besides, {others}."));
    Some(match requests > 0.0 {
        true => format!("Of these, {} are in the hands of threads that stand: {first}.{besides}", count(requests)),
        false => format!("Meanwhile {first}.{besides}"),
    })
}

fn list(case: &Case, places: &[&Place<'_>]) -> Option<String> {
    let all: Vec<String> = places.iter().take(TOLD).map(|place| words(case, place)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Places in futex where about as many threads stand as there are requests: those before locks, others, or both, if either may have them;
/// else those before locks, if they could have a good part.
fn as_many<'p, 's>(all: &'p [Place<'s>], requests: f64) -> Vec<&'p Place<'s>> {
    let in_futex: Vec<&Place<'_>> = all.iter().filter(|place| place.threads[0].line == Blocked::Futex).collect();
    let number = |places: &[&Place<'_>]| places.iter().map(|place| place.threads.len()).sum::<usize>() as f64;
    let near = |places: &[&Place<'_>]| AS_MANY.contains(&ratio(number(places), requests));
    let (locks, others): (Vec<_>, Vec<_>) =
        in_futex.iter().copied().partition(|place| place.threads[0].who.fd_kind == LOCK);
    let could = number(&locks) >= (requests * A_GOOD_PART).max(1.0);
    // One place says more than that all of them together are as many.
    let one = others.iter().copied().find(|place| near(&[*place]));
    let others = one.map_or(others, |place| vec![place]);
    match (near(&locks), near(&others)) {
        (true, false) => locks,
        (true, true) => [locks, others].concat(),
        (false, true) => others,
        (false, false) if near(&in_futex) => in_futex,
        (false, false) => {
            if could {
                locks
            } else {
                Vec::new()
            }
        }
    }
}

/// Where about as many threads stand as requests hang, in words: "8 threads before locks, called from list (4), put (4)"; none = nowhere.
pub(crate) fn meanwhile(case: &Case, requests: f64) -> Option<String> {
    let (standers, stacks) = (case.fact::<Standers>().ok()?, case.fact::<Stacks>().ok()?);
    let all = standers.places(&stacks);
    let many = as_many(&all, requests);
    let threads: usize = many.iter().map(|place| place.threads.len()).sum();
    many.first()?;
    let is_lock = many.iter().all(|place| place.threads[0].who.fd_kind == LOCK);
    let mut by_name: Vec<(String, usize)> = Vec::new();
    for (name, n) in many.iter().filter_map(|place| Some((short(place.from.first()?), place.threads.len()))) {
        match by_name.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) => *all += n,
            None => by_name.push((name, n)),
        }
    }
    let from: Vec<String> = match &by_name[..] {
        [(name, _)] => vec![name.clone()],
        several => several.iter().take(TOLD).map(|(name, n)| format!("{name} ({n})")).collect(),
    };
    let from = if from.is_empty() { String::new() } else { format!(", called from {}", from.join(", ")) };
    let stand = if is_lock { "before locks" } else { "in futex" };
    Some(format!("{} {stand}{from}", plural(threads, "thread")))
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
        assert!(said(&locks).unwrap().contains("; 3 threads stand in futex (lock), called from"), "at two places");
        let one: String = (2..9).map(|tid| stands(tid, 1, "")).collect();
        assert!(said(&one).unwrap().starts_with("Meanwhile 7 threads stand in futex (lock), called from debit"));
        let as_many: String = (2..22).map(|tid| stands(tid, 3, "")).collect();
        assert!(said(&as_many).unwrap().starts_with("Meanwhile 20 threads stand in futex, called from credit"));
    }

    #[test]
    fn in_a_few_words() {
        let few = |rows: &str| {
            let recording = parse(&text(&[("loop", EPOLL)], &format!("{FRAMES}{rows}"))).unwrap();
            meanwhile(&Case::new(&recording), 20.0)
        };
        let locks: String = (2..11).map(|tid| stands(tid, 1 + u32::from(tid > 6), "")).collect();
        assert_eq!(few(&locks).unwrap(), "9 threads before locks, called from debit (5), credit (4)");
        let events: String = (2..22).map(|tid| stands(tid, 3, "")).collect();
        assert_eq!(few(&events).unwrap(), "20 threads in futex, called from credit");
        let both = format!("{}{events}", (30..48).map(|tid| stands(tid, 1, "")).collect::<String>());
        assert_eq!(few(&both).unwrap(), "38 threads in futex, called from debit (18), credit (20)");
        let pool: String = (30..90).map(|tid| stands(tid, 3, "")).collect();
        assert_eq!(
            few(&format!("{locks}{pool}")).unwrap(),
            "9 threads before locks, called from debit (5), credit (4)"
        );
        assert_eq!(few(&stands(2, 3, "")), None);
    }

    #[test]
    fn a_loop_inside_the_loop_that_serves() {
        let rows = "frame id=5 symbol=node::SyncProcessRunner::Spawn module=/node kind=native
            stack id=5 frames=[5] complete=true
            standing pid=1 tid=1 comm=node wait_ns=4e9 syscall=281 user_stack=5
            standing pid=7 tid=7 comm=convert wait_ns=3e9 syscall=230\n";
        let told = said(rows).unwrap();
        assert!(
            told.starts_with("Meanwhile 1 thread stands in epoll_pwait (without its clients), called from node::Sync"),
            "{told}"
        );
        assert!(told.ends_with("Besides, 1 thread of convert/7 stands in clock_nanosleep, for 3.0 s."), "{told}");
    }
}
