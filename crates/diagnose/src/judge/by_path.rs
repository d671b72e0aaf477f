// SPDX-License-Identifier: Apache-2.0
//! Causes that requests were seen to wait for, where the time of threads alone tells too little: idle workers beside busy ones,
//! a few slow requests among many quick ones, a thread of which no wait for a client was seen.

use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::links;
use crate::judgement::paths::{Felt, is_own_sleep, stands_before_peers};
use crate::rules::{Statement, confidence, explain};
use crate::verdict::{Finding, Link, Subject};
use crate::walk::Walk;
use crate::walk::chains::Chain;
use crate::walk::paths::{Part, What};
use crate::wording::{percent, seconds};

/// A cause that paths tell by themselves.
struct Told {
    cause: &'static str,
    is_it: fn(&Part) -> bool,
    /// Requests … for most of their time.
    does: &'static str,
    /// A cause that says the same more precisely, where it was found.
    unless: &'static str,
}

const TOLD: &[Told] = &[
    Told {
        cause: "user-lock-contention",
        is_it: stands_before_peers,
        does: "wait for each other",
        unless: "pool-exhausted",
    },
    Told {
        cause: "sleep-in-path",
        is_it: is_own_sleep,
        does: "wait until a thread of the service has slept",
        unless: "",
    },
];

/// What was found, but for causes that were found otherwise.
pub fn found(case: &Case, known: impl Fn(&str) -> bool) -> Vec<(Finding, Statement)> {
    let Some(felt) = Felt::of(case) else { return Vec::new() };
    // One waits for another in an interpreter that runs one at a time.
    let in_turn = case.fact::<Walk>().is_ok_and(|walk| walk.mostly_interpreter());
    let told = TOLD.iter().filter(|told| !in_turn || told.cause != "user-lock-contention");
    let unknown = told.filter(|told| !known(told.cause) && !known(told.unless));
    unknown.filter_map(|told| Some(finding(case, &felt, told, felt.most(told.is_it)?))).collect()
}

fn finding(case: &Case, felt: &Felt, told: &Told, part: f64) -> (Finding, Statement) {
    let headline = format!(
        "{} {} for {} of their response time ({} of {})",
        felt.whose(),
        told.does,
        percent(part),
        seconds(felt.mean_ns() * part / 1e9),
        seconds(felt.mean_ns() / 1e9)
    );
    let longest = longest(felt, told.is_it);
    let stacks = case.fact::<Stacks>().ok();
    let chain = longest.zip(stacks.as_deref()).map_or_else(Vec::new, |(chain, stacks)| links(chain, stacks));
    let first = chain.first().cloned().unwrap_or_default();
    let place = first.stack.first().map_or(String::new(), |function| format!(", in {function}"));
    let finding = Finding {
        cause: told.cause.into(),
        confidence: confidence(case, 1),
        summary: format!("{}; for {} of it they {}{place}", felt.words(), percent(part), told.does),
        subject: subject(longest),
        explains: felt.explains(case, part),
        evidence: felt.evidence("of it, spent on this", part),
        chain,
        remedy: explain(told.cause).map_or(String::new(), |words| words.what_to_do.to_string()),
        check: "The response times fall by this part at the same load.".into(),
    };
    (finding, Statement::short(headline, advice(&first)))
}

fn advice(first: &Link) -> String {
    let place = first.stack.first().map_or(String::new(), |function| format!(" of {function}"));
    format!("look at the {}{place} in {}", first.waits_on, first.who)
}

/// The chain with most of it.
fn longest(felt: &Felt, is_it: fn(&Part) -> bool) -> Option<&Chain> {
    felt.group().parts.iter().filter(|part| is_it(part)).find_map(|part| match &part.what {
        What::Waits(chain) => Some(&**chain),
        _ => None,
    })
}

fn subject(chain: Option<&Chain>) -> Subject {
    let who = chain.map(|chain| &chain.links[0].who);
    Subject {
        pid: who.map(|who| who.pid),
        comm: who.map(|who| who.comm.clone()),
        syscall: who.map(|who| who.call.clone()),
        ..Subject::default()
    }
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use crate::diagnose;

    /// `number` requests, each read by thread 1 and answered by it so many ms after it came; it sleeps for so long of that.
    fn requests(number: u32, length: u32, asleep: u32) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=10e9 pid=1 tid=1 comm=worker wall_ns=10e9 cpu_ns=5e8 blocked_ns=95e8
            burst t_ns=10e9 length_ns=10e9
            frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
            stack id=1 frames=[1]\n"
            .to_string();
        for at in (0..number).map(|nth| 10 + nth * (length + 5)) {
            let (end, woken) = (at + length, at + asleep);
            text += &format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={at}e6 began_tid=1 read_ns={at}e6 ended_tid=1
                 wakeup t_ns={woken}e6 pid=1 tid=1 comm=worker wait_ns={asleep}e6 blocked_ns={asleep}e6 since_ns={at}e6 waits=1 syscall=35 context=interrupt waker_stack=1\n"
            );
        }
        text + &format!(
            "exchange role=accepted port=80 stage=response count={number} sum_ns={}e6 length_ns=[{length}000000] counts=[{number}]",
            number * length
        )
    }

    fn verdict(number: u32, length: u32, asleep: u32) -> String {
        diagnose(&parse(&requests(number, length, asleep)).unwrap()).verdict
    }

    #[test]
    fn requests_that_wait_for_a_sleep() {
        let found = diagnose(&parse(&requests(60, 25, 20)).unwrap());
        assert_eq!(found.verdict, "sleep-in-path", "{found:?}");
        assert!(found.headline.contains("80 % of their response time (20 ms of 25 ms)"), "{}", found.headline);
        assert!(!found.ruled_out.iter().any(|ruled| ruled.cause == "sleep-in-path"));
    }

    /// A thread beside it takes a request now and then, and sleeps most of the time.
    #[test]
    fn a_sleep_that_requests_do_not_wait_for_is_ruled_out() {
        let mut text = requests(60, 25, 0);
        for at in (0..90).map(|nth| 50 + nth * 100) {
            text += &format!(
                "\nwakeup t_ns={at}e6 pid=1 tid=2 comm=janitor wait_ns=1e6 blocked_ns=1e6 waits=1 syscall=0 family=2 local_port=80 remote_port=9 context=interrupt
                 wakeup t_ns={}e6 pid=1 tid=2 comm=janitor wait_ns=90e6 blocked_ns=90e6 waits=1 syscall=35 context=interrupt waker_stack=1",
                at + 95
            );
        }
        let verdict = diagnose(&parse(&text).unwrap());
        let ruled = verdict.ruled_out.iter().find(|ruled| ruled.cause == "sleep-in-path");
        let why = ruled.map_or("", |ruled| ruled.why.as_str());
        assert!(why.contains("followed from end to end spent 0 % of their time on it"), "{why:?} {}", verdict.headline);
    }

    #[test]
    fn too_few_too_short_or_too_little_of_it() {
        assert_ne!(verdict(20, 25, 20), "sleep-in-path", "too few requests");
        assert_ne!(verdict(60, 8, 7), "sleep-in-path", "nobody feels it");
        assert_ne!(verdict(60, 25, 10), "sleep-in-path", "a part of their time");
    }
}
