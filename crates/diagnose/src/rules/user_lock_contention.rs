// SPDX-License-Identifier: Apache-2.0
//! Threads of the target wait for a lock that another of its threads holds.

mod deadlock;

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little, too_short};
use crate::answer::{Gap, Measured, Unit};
use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::{Waiting, wait_ns};
use crate::judgement::enough::{little, little_of_requests, not_for_requests};
use crate::judgement::holders::{Locks, holder_at, holder_does, one_at_a_time, who_holds};
use crate::phrases::chain::{called_from, links, reader};
use crate::runtimes::collectors::Collector;
use crate::verdict::{Explains, Finding, Subject};
use crate::walk::chains::Chain;
use crate::walk::{Kind, Walk, lasting};
use crate::wording::{percent, seconds};

pub(super) static RULE: Rule =
    Rule { cause: "user-lock-contention", explain: explain!("user-lock-contention"), check: Check::Accuses(check) };

/// Of active time: more than everything else that the target did.
const MIN_SHARE: f64 = 0.5;

/// Of the window, over all threads.
const MIN_TIME: f64 = 0.05;

/// One wait, on average: threads that hand a short lock around keep no request for long, and those that take turns to listen
/// stand before that lock while there is nothing to do.
const MIN_WAIT_NS: f64 = 1e6;

fn check(case: &Case) -> Checked {
    if let Some(found) = deadlock::check(case) {
        return Ok(found);
    }
    let waiting = case.fact::<Waiting>()?;
    let locks = Locks::of(case)?;
    let (chains, ns) = waiting.of(|chain| locks.keep(chain) && !ends_in_collector(chain));
    let Some(first) = chains.first() else { return none_waited_for(&waiting) };
    let part = waiting.share(ns);
    if let Some((seen, why)) = little(case, (ns, part), MIN_SHARE, MIN_TIME) {
        return too_little(seen, format!("waiting for locks was {why}"));
    }
    let length_ns = wait_ns(&chains);
    if length_ns < MIN_WAIT_NS {
        let length = seconds(length_ns / 1e9);
        let why =
            format!("waiting for locks was {} of its active time, but {length} at a time (under 1 ms)", percent(part));
        return too_short(Measured::new(length_ns / 1e9, MIN_WAIT_NS / 1e9, Unit::Seconds), why);
    }
    if let Some(why) = hardly_felt(case, &waiting, ns) {
        return explained(why);
    }
    let stranger = stranger(case, first)?;
    let whose = stranger.as_ref().map_or(String::new(), |name| format!(" ({name}, another service)"));
    let (part, does, meanwhile) = (percent(part), holder_does(first), meanwhile(case, first));
    let headline = format!("waits for locks {part} of its active time, while the holder{whose} {does}{meanwhile}");
    let look = |name| format!("look at {name}, which holds the lock: it should hold it for less");
    let advice = stranger.map_or_else(|| advice(first), look);
    found(finding(case, &waiting, first, ns)?, headline, advice)
}

/// No lock was held by somebody who was at something.
fn none_waited_for(waiting: &Waiting) -> Checked {
    if waiting.listening_ns <= 0.0 {
        return absent("no wait of the target was for a lock that another of its threads held");
    }
    let idle = seconds(waiting.listening_ns / 1e9);
    explained(format!(
        "threads stood before locks for {idle} whose holders mostly waited for the next request of a client: workers that take turns \
         to listen, or transactions that are kept open"
    ))
}

/// Why requests hardly waited for so much before locks, ns, if so.
fn hardly_felt(case: &Case, waiting: &Waiting, ns: f64) -> Option<String> {
    if let Some(why) = not_for_requests(case, waiting, ns) {
        return Some(format!("waiting for locks was {why}"));
    }
    // Many who are woken at once, as by news, stand before the lock that each of them takes then: for a moment of what they waited.
    let part = percent(little_of_requests(case, ns)?);
    Some(format!(
        "threads stood before locks for {}: {part} at most of the time that clients waited",
        seconds(ns / 1e9)
    ))
}

/// The holder, if it is none of the target's processes: locks on files are between services.
fn stranger(case: &Case, chain: &Chain) -> Result<Option<String>, Gap> {
    let (pid, comm) = who_holds(chain);
    Ok((pid != 0 && !case.fact::<Walk>()?.target.contains(&pid)).then(|| format!("{comm}/{pid}")))
}

/// Whether it ends in a thread that collects garbage: then it waited for the collection, and locks of the runtime handed that
/// on.
fn ends_in_collector(chain: &Chain) -> bool {
    Collector::of(&chain.end.comm, std::iter::empty()).is_some()
}

/// In what one thread at a time is, where nobody saw what the holder does.
fn meanwhile(case: &Case, chain: &Chain) -> String {
    let line = if chain.end.kind == Kind::Unseen { one_at_a_time(case) } else { None };
    line.map_or_else(String::new, |line| format!("; one thread at a time is blocked: {}", line.words()))
}

fn advice(chain: &Chain) -> String {
    let at = holder_at(chain);
    let advice = match (at, chain.end.kind) {
        (None, Kind::OnCpu) => "hold the lock for less: compute outside of it, or split it",
        (None, Kind::RunQueue) => "give it CPUs, and hold the lock for less: compute outside of it, or split it",
        (None, Kind::Unseen) => "see what holds it: a debugger's stacks of all threads, a few times",
        _ => match at.and_then(|at| reader(chain, at)) {
            Some(name) => return format!("write outside of the lock; and look at {name}, which reads too slowly"),
            None => "hold the lock for less: take what the holder waits for out of it",
        },
    };
    advice.to_string()
}

/// What to change, with the holder by name.
fn remedy(chain: &Chain, holder: &str) -> String {
    match (holder_at(chain), chain.end.kind) {
        (None, Kind::RunQueue) => format!(
            "While it holds the lock, {holder} is ready but has no CPU: every thread before the lock waits for that too. \
             Free CPUs, and take what it computes out of the lock, or split the lock so that fewer wait for it."
        ),
        (at, _) => format!(
            "While it holds the lock, {holder} {}. Move that out of the lock, or split the lock so that fewer wait for it.{}",
            holder_does(chain),
            at.and_then(|at| reader(chain, at))
                .map_or(String::new(), |name| format!(" What it writes, {name} reads too slowly."))
        ),
    }
}

/// The same where the holder is another service.
fn remedy_of_stranger(chain: &Chain, name: &str) -> String {
    format!(
        "{name} is none of the target's processes, and while it holds the lock it {}. It is the one to change: move that out of \
         the lock. The target can only stop sharing it, or ask for it without waiting and do without.",
        holder_does(chain)
    )
}

fn finding(case: &Case, waiting: &Waiting, first: &Chain, ns: f64) -> Result<Finding, Gap> {
    let stacks = case.fact::<Stacks>()?;
    let part = waiting.share(ns);
    let (pid, comm) = who_holds(first);
    let waiter = &first.links[0].who;
    let from = called_from(&*case.fact()?, waiter, &stacks);
    Ok(Finding {
        summary: format!(
            "{} threads of the target stood before locks for {} of thread time, {} of the target's active time{from}; \
             the holder ({comm}) {}",
            waiter.comm,
            seconds(ns / 1e9),
            percent(part),
            holder_does(first)
        ),
        subject: Subject {
            pid: lasting(pid),
            comm: Some(comm.to_string()),
            syscall: Some(waiter.call.clone()),
            ..Subject::default()
        },
        explains: Explains { share: part, of: "active time".into(), seconds: ns / 1e9 },
        evidence: vec![
            evidence(
                "waiting for locks",
                ns / 1e9,
                "s",
                "a small part of active time",
                format!("strace -f -c -e trace={} -p {}", waiter.call, waiter.pid),
            ),
            evidence("on average, threads before a lock", ns / case.length_ns(), "threads", "well under 1", ""),
            evidence("CPU demand", waiting.demand_ns / 1e9, "s", "most of active time", ""),
        ],
        chain: links(first, &stacks),
        remedy: stranger(case, first)?.map_or(remedy(first, comm), |name| remedy_of_stranger(first, &name)),
        check: "After the change the ledger's line of that wait and the share of lock waits fall at the same load."
            .into(),
        ..RULE.finding(case, 1)
    })
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::{Chain, Kind, RULE, advice, remedy};
    use crate::walk::End;

    fn text(value: u32) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
             stack id=1 frames=[1]
             thread pid=1 tid=1 comm=w wall_ns=3e9 cpu_ns=1e8 blocked_ns=29e8
             wakeup t_ns=900e6 pid=1 tid=1 comm=w wait_ns=20e6 blocked_ns=1800e6 syscall=202 args=[64,128,{value},0] context=thread waker_pid=1 waker_tid=2 waker_comm=w waker_syscall=202
             wakeup t_ns=899e6 since_ns=0 pid=1 tid=2 comm=w wait_ns=19e6 blocked_ns=19e6 syscall=230 context=interrupt waker_stack=1"
        )
    }

    #[test]
    fn a_holder_that_sleeps() {
        let finding = found(&RULE, &text(2));
        assert!(finding.summary.ends_with("the holder (w) sleeps"), "{}", finding.summary);
        assert_eq!(finding.chain.len(), 3);
    }

    /// The log that it writes meanwhile is full.
    #[test]
    fn a_holder_that_waits_for_a_reader() {
        let writes = text(2).replace(
            "syscall=230 context=interrupt waker_stack=1",
            "syscall=1 fd_kind=pipe context=thread waker_pid=9 waker_tid=9 waker_comm=logger waker_syscall=0
             wakeup t_ns=898e6 since_ns=0 pid=9 tid=9 comm=logger wait_ns=18e6 blocked_ns=18e6 syscall=230 context=interrupt waker_stack=1",
        );
        let finding = found(&RULE, &writes);
        assert!(finding.summary.ends_with("the holder (w) waits in write (pipe)"), "{}", finding.summary);
        assert!(finding.remedy.ends_with("What it writes, logger/9 reads too slowly."), "{}", finding.remedy);
    }

    /// A lock on a file, which another service holds.
    #[test]
    fn a_holder_that_is_none_of_the_target() {
        let other = text(2)
            .replace("syscall=202 args=[64,128,2,0]", "syscall=73 path=/run/lock")
            .replace("waker_pid=1", "waker_pid=7")
            .replace("pid=1 tid=2", "pid=7 tid=2");
        let finding = found(&RULE, &other);
        assert!(finding.remedy.starts_with("w/7 is none of the target's processes"), "{}", finding.remedy);
        let shared = text(2).replace("waker_pid=1", "waker_pid=7").replace("pid=1 tid=2", "pid=7 tid=2");
        found(&RULE, &shared);
        let engine = shared.replace("tid=2 comm=w", "tid=2 comm=engine").replace("waker_comm=w", "waker_comm=engine");
        silent(&RULE, &engine);
    }

    #[test]
    fn a_collection_that_threads_wait_for_by_way_of_locks() {
        let collecting = text(2)
            .replace("waker_comm=w", "waker_comm=\"VM Thread\"")
            .replace("tid=2 comm=w", "tid=2 comm=\"VM Thread\"");
        assert!(silent(&RULE, &collecting).contains("no wait"));
    }

    /// What nobody can take out of a lock must not be advised: a CPU that is missing.
    #[test]
    fn a_holder_without_a_cpu_needs_one() {
        let end = End { kind: Kind::RunQueue, pid: 1, comm: "pricer".into(), detail: String::new() };
        let mut chain = Chain { links: Vec::new(), end, answer: 0, ns: 1e9, waits: 1 };
        assert!(remedy(&chain, "pricer").contains("pricer is ready but has no CPU"));
        assert!(advice(&chain).starts_with("give it CPUs"));
        chain.end.kind = Kind::OnCpu;
        assert!(remedy(&chain, "pricer").contains("pricer computes. Move that out"));
        assert!(!advice(&chain).contains("waits for"));
    }

    /// Fifty long polls are woken by the same news, and each takes the lock before it answers.
    #[test]
    fn a_moment_before_a_lock_after_a_long_wait() {
        let asked = |count: u32, each_ns: f64| {
            format!(
                "{}\nexchange_window t_ns=30e9 length_ns=30e9
                 exchange role=accepted port=80 stage=response count={count} sum_ns={} length_ns=[{each_ns}] counts=[{count}]",
                text(2).replace("length_ns=1e9", "length_ns=30e9"),
                f64::from(count) * each_ns
            )
        };
        found(&RULE, &asked(50, 6e7));
        let why = silent(&RULE, &asked(50, 3e9));
        assert!(why.contains("of the time that clients waited"), "{why}");
    }

    #[test]
    fn a_short_lock_is_handed_around() {
        let short = text(2).replace("wait_ns=20e6", "wait_ns=1e5").replace("wait_ns=19e6", "wait_ns=9e4");
        assert!(silent(&RULE, &short).contains("100 µs at a time (under 1 ms)"));
    }

    /// Workers that take turns to wait for the next connection.
    #[test]
    fn a_holder_that_waits_for_clients_keeps_nobody() {
        let listens = text(2).replace("syscall=230", "syscall=43");
        let why = silent(&RULE, &listens);
        assert!(why.contains("workers that take turns to listen, or transactions that are kept open"), "{why}");
    }

    #[test]
    fn a_pool_without_work() {
        assert!(silent(&RULE, &text(7)).contains("no wait"));
    }
}
