// SPDX-License-Identifier: Apache-2.0
//! Threads that serve clients sleep between taking a request and answering it.

use std::collections::BTreeSet;

use recording::tables::Request;

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little};
use crate::answer::Gap;
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::servers::Servers;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::{Sleeper, Waiting};
use crate::facts::workers::Workers;
use crate::judgement::backoff::Failing;
use crate::judgement::enough::{little, not_for_requests};
use crate::judgement::felt::Felt;
use crate::judgement::paths::{telling, waits_for_a_sleep};
use crate::judgement::streams;
use crate::ledger::threads::Threads;
use crate::phrases::chain::{called_from, callers};
use crate::runtimes::code::Code;
use crate::runtimes::hints::{self, Nap};
use crate::statistics::{ratio, share};
use crate::syscall::{Family, family};
use crate::verdict::{Explains, Finding, Subject};
use crate::walk::paths::Paths;
use crate::walk::{SLEEP, Walk, Who, kind_of_thread};
use crate::wording::{percent, plural, seconds, short};

pub(super) static RULE: Rule =
    Rule { cause: "sleep-in-path", explain: explain!("sleep-in-path"), check: Check::Accuses(check) };

/// Half of active time.
const MIN_SHARE: f64 = 0.5;

/// Of the window, for one thread.
const MIN_TIME: f64 = 0.05;

/// Waits that a client ended, for each so many sleeps that were picked: those waits may be short, and are picked rarely.
const SLEEPS_PER_CLIENT: u64 = 50;

fn check(case: &Case) -> Checked {
    let waiting = case.fact::<Waiting>()?;
    let serving = serving(case, &waiting);
    let ns: f64 = serving.iter().map(|t| t.slept_ns).sum();
    let Some(first) = serving.first() else {
        return absent("no thread that takes requests of clients sleeps by itself");
    };
    let part = waiting.share(ns);
    if let Some((seen, why)) = little(case, (ns, part), MIN_SHARE, MIN_TIME) {
        return too_little(seen, format!("threads that serve clients slept for {why}"));
    }
    if let Some(why) = not_for_requests(case, &waiting, ns) {
        return explained(format!("threads that serve clients slept for {why}"));
    }
    if let Some(why) = streams::begin(case) {
        return explained(format!("threads that serve clients slept {} of its active time, but {why}", percent(part)));
    }
    let headline =
        format!("sleeps {} of its active time in threads that serve clients ({})", percent(part), first.comm);
    let Place { from, function, known } = code(case, first)?;
    let finding = finding(case, (first, &from, function.clone()), &serving, (ns, part));
    let place = function.map_or("the code that serves requests".to_string(), |name| short(&name));
    let advice = known
        .map_or_else(|| format!("find the {} in {place}", first.call), |nap| format!("{}: {}", nap.what, nap.look));
    match Failing::of(case) {
        None => found(finding, headline, advice),
        Some(failing) => {
            let remedy = format!(
                "Do not shorten the sleep before it is known that it is none between two tries: {}.",
                failing.advice()
            );
            found(Finding { remedy, ..finding }, format!("{headline}, {}", failing.words()), failing.advice())
        }
    }
}

/// Threads that serve clients and sleep.
fn serving<'w>(case: &Case, waiting: &'w Waiting) -> Vec<&'w Sleeper> {
    let by_clients = |t: &&Sleeper| t.clients > 0 && t.sleeps <= t.clients * SLEEPS_PER_CLIENT;
    let mut serving: Vec<&Sleeper> = waiting.sleepers.iter().filter(by_clients).collect();
    if serving.is_empty() {
        serving = waiting.sleepers.iter().filter(|t| keeps_clients_waiting(case, t)).collect();
    }
    // Of requests that take long, their own paths say more.
    if serving.is_empty() && Felt::of(case).is_none() {
        let answering = answering(case);
        serving = waiting.sleepers.iter().filter(|t| answering.contains(&t.tid)).collect();
    }
    serving
}

/// Of a request, asleep on average: whoever looks for work now and then has some pause, and nobody feels less.
const FELT_NS: f64 = 1e6;

/// Threads that answer requests, if these spent half of their time in sleeps: those of a pool that always has the next request at hand
/// never wait for a client.
fn answering(case: &Case) -> BTreeSet<u32> {
    let sleep = |port: &Paths| {
        let part = port.all.share(waits_for_a_sleep);
        part >= MIN_SHARE && ratio(port.all.ns, port.all.requests as f64) * part >= FELT_NS
    };
    if !telling(case).is_some_and(|paths| paths.main().is_some_and(sleep)) {
        return BTreeSet::new();
    }
    let followed = case.recording.rows::<Request>().iter().filter(|row| row.is_of_client());
    followed.map(|row| row.ended_tid).collect()
}

/// Clients that wait for an answer, or to be taken, while it sleeps, on average.
const MIN_LATE: f64 = 1.0;

/// Of the window, with somebody in the accept queue: bursts come and go.
const MIN_QUEUED: f64 = 0.7;

/// Of the CPU time of its process, in the thread: who does the work serves the requests.
const MIN_WORK: f64 = 0.5;

/// Of the requests that wait: nobody has read what they ask.
const MOSTLY: f64 = 0.5;

/// Of its own time, asleep.
const MIN_ASLEEP: f64 = 0.5;

/// Whether a thread that was never seen to wait for clients must be the one that serves them: they wait for answers, it does
/// most of what its process does, and sleeps. An event loop with the next request always at hand never waits for one.
fn keeps_clients_waiting(case: &Case, sleeper: &Sleeper) -> bool {
    let Ok(ledger) = case.fact::<Threads>() else { return false };
    let connections = case.fact::<Connections>().map_or_else(|_| Default::default(), |c| (*c).clone());
    let Some(thread) = ledger.thread(sleeper.pid, sleeper.tid) else { return false };
    if case.fact::<Servers>().is_ok_and(|servers| !servers.has(sleeper.pid)) {
        return false;
    }
    let of_process = ledger.threads.iter().filter(|t| t.pid == sleeper.pid).map(|t| t.lines.cpu_ns).sum();
    let accepted = &connections.accepted;
    // Long polls have been read, by whoever sleeps or by another thread. And where no request was followed, one that only looks after
    // things sleeps as well, beside a server that stands: who serves is the first thread of its process, or the only one.
    let others = ledger.threads.iter().filter(|t| t.pid == sleeper.pid).count() > 1;
    let leaves_them = (sleeper.tid == sleeper.pid || !others) && accepted.unread >= accepted.late * MOSTLY;
    let has_or_leaves_them = || takes_requests(case, sleeper).unwrap_or(leaves_them);
    let wait_for_answers = || connections.tells() && accepted.late >= MIN_LATE && has_or_leaves_them();
    let wait_to_be_taken = || case.fact::<Workers>().is_ok_and(|w| w.queue >= MIN_LATE && w.queued >= MIN_QUEUED);
    share(sleeper.slept_ns, thread.lines.wall_ns) >= MIN_ASLEEP
        && share(thread.lines.cpu_ns, of_process) >= MIN_WORK
        && (wait_for_answers() || wait_to_be_taken())
}

/// Whether requests that were followed were read or answered by that thread; none = none was.
fn takes_requests(case: &Case, sleeper: &Sleeper) -> Option<bool> {
    let mut followed = case.recording.rows::<Request>().iter().filter(|row| row.is_of_client()).peekable();
    followed.peek()?;
    Some(followed.any(|row| row.began_tid == sleeper.tid || row.ended_tid == sleeper.tid))
}

/// Where in its program a thread sleeps.
struct Place {
    /// In words.
    from: String,
    /// The innermost function of its own.
    function: Option<String>,
    known: Option<&'static Nap>,
}

fn code(case: &Case, sleeper: &Sleeper) -> Result<Place, Gap> {
    let (walk, stacks) = (case.fact::<Walk>()?, case.fact::<Stacks>()?);
    let (comm, call) = (sleeper.comm.clone(), sleeper.call.clone());
    // In a call that is made for something else, the runtime tells that it sleeps.
    let fd_kind = if family(&call) == Family::Sleep { "" } else { SLEEP };
    let who = Who { pid: sleeper.pid, comm: kind_of_thread(&comm), call, fd_kind: fd_kind.into(), ..Who::default() };
    // The library's own function for it is not where the sleep is.
    let caller = callers(walk.code(&who), &stacks).find(|code| !code.symbol.starts_with("std::"));
    let (function, known) = (caller.map(Code::label), caller.and_then(hints::of_sleep));
    Ok(Place { from: called_from(&walk, &who, &stacks), function, known })
}

fn finding(
    case: &Case,
    (first, from, function): (&Sleeper, &str, Option<String>),
    serving: &[&Sleeper],
    (ns, part): (f64, f64),
) -> Finding {
    let sleeps: u64 = serving.iter().map(|t| t.sleeps).sum();
    let clients: u64 = serving.iter().map(|t| t.clients).sum();
    Finding {
        summary: format!(
            "{} that {} clients slept for {}, {} of the target's active time, in {}{from}",
            plural(serving.len(), "thread"),
            if serving.len() == 1 { "serves" } else { "serve" },
            seconds(ns / 1e9),
            percent(part),
            first.call
        ),
        subject: Subject {
            pid: Some(first.pid),
            tid: Some(first.tid),
            comm: Some(first.comm.clone()),
            syscall: Some(first.call.clone()),
            function,
            ..Subject::default()
        },
        explains: Explains { share: part, of: "active time".into(), seconds: ns / 1e9 },
        evidence: vec![
            evidence(
                "time asleep by itself",
                ns / 1e9,
                "s",
                "0 in threads that serve clients",
                format!("strace -f -T -e trace={} -p {}", first.call, first.pid),
            ),
            evidence("sleeps that were picked", sleeps as f64, "waits", "0", ""),
            evidence("waits of the same threads that a client ended", clients as f64, "waits", "", ""),
        ],
        remedy:
            "Remove the sleep, or wait for what it waits for: a condition, a readiness, a change. A limit on the rate \
                 belongs before a request is taken."
                .into(),
        check: "After the change the thread ledger's line `blocked_sleep` is near 0 for these threads.".into(),
        ..RULE.finding(case, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    const SERVER: &str = "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
        process pid=1 comm=api listen=[\"tcp 0.0.0.0:80\"]
        frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
        stack id=1 frames=[1]
        thread pid=1 tid=2 comm=worker wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
        wakeup t_ns=900e6 pid=1 tid=2 comm=worker wait_ns=20e6 blocked_ns=800e6 syscall=230 context=interrupt waker_stack=1";

    #[test]
    fn a_worker_that_sleeps_between_requests() {
        let text = format!(
            "{SERVER}
             wakeup t_ns=950e6 pid=1 tid=2 comm=worker wait_ns=1e6 blocked_ns=1e6 syscall=0 fd_kind=socket local_port=80 context=thread waker_pid=9"
        );
        let finding = found(&RULE, &text);
        assert_eq!(finding.subject.syscall.as_deref(), Some("clock_nanosleep"));
        assert!(finding.summary.contains("1 thread that serves clients slept for 800 ms"), "{}", finding.summary);
    }

    /// To do without a sleep between two tries would be worse.
    #[test]
    fn a_worker_that_sleeps_before_it_asks_again() {
        let text = |failed: u32| {
            format!(
                "{SERVER}
                 wakeup t_ns=950e6 pid=1 tid=2 comm=worker wait_ns=1e6 blocked_ns=1e6 syscall=0 fd_kind=socket local_port=80 context=thread waker_pid=9
                 label t_ns=1e9 role=made peer=10.0.0.9:80 protocol=http label=\"GET /\" outcome=failed seen={failed} count={failed}
                 label t_ns=1e9 role=made peer=10.0.0.9:80 protocol=http label=\"GET /\" outcome=ok seen=60 count=60"
            )
        };
        assert!(found(&RULE, &text(40)).remedy.contains("why 10.0.0.9:80 fails (40 of 100 answers)"));
        assert!(found(&RULE, &text(5)).remedy.contains("Remove the sleep"));
    }

    /// A loop that never waits for a client, whose clients wait for answers while it sleeps; and a poller beside a thread that takes
    /// their requests, or that is a long poll's.
    #[test]
    fn whoever_keeps_clients_waiting() {
        let with = |more: &str| {
            format!(
                "{SERVER}
                 connection t_ns=1e9 role=accepted port=80 looks=10 open=40 unanswered=30 late=30 late_ns=60e9 {more}"
            )
        };
        let request = |tid: u32| {
            format!(
                "unread=0\n request t_ns=9e8 role=accepted port=80 pid=1 began_ns=7e8 began_tid={tid} read_ns=7e8 ended_tid={tid}"
            )
        };
        found(&RULE, &with("unread=28"));
        found(&RULE, &with(&request(2)));
        assert!(silent(&RULE, &with(&request(3))).contains("no thread"), "another one takes them");
        assert!(
            silent(&RULE, &with("unread=0")).contains("no thread"),
            "who has read them may have nothing to say yet"
        );
    }

    #[test]
    fn housekeeping_may_sleep() {
        let other = format!(
            "{SERVER}
             wakeup t_ns=950e6 pid=1 tid=3 comm=worker wait_ns=1e6 blocked_ns=1e6 syscall=0 fd_kind=socket local_port=80 context=thread waker_pid=9"
        );
        assert!(silent(&RULE, &other).contains("no thread"));
    }
}
