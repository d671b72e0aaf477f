// SPDX-License-Identifier: Apache-2.0
//! Why the numbers of a load are not what they seem.

use std::collections::BTreeMap;

use crate::client::is_full;
use crate::lengths::Percentiles;
use crate::limits::LONGEST;
use crate::queued::queued;
use crate::reason::Reason;
use crate::run::{Failure, Run, Stood};
use crate::taken::not_taken;
use crate::verdict::{Phase, Verdict};

/// Of what was due: so much without an answer is more than a few bad moments.
pub(crate) const MISSING: f64 = 0.05;
/// Of what was sent: failures that change what the rest says.
pub(crate) const FAILED: f64 = 0.01;
/// How much longer requests take from when they were due than from when they were sent, if they wait for a connection.
pub(crate) const QUEUED: f64 = 2.0;
/// The same of another's generator, if what it prints is not the truth.
const HIDDEN: f64 = 5.0;
/// By how much longer at least, s.
pub(crate) const WAITED: f64 = 1e-3;
/// Connections of one client that no visitor makes, and how many there are for each request if each has its own.
const MANY_CONNECTIONS: u64 = 1000;
const EACH: f64 = 0.9;
/// Requests that wait while nobody is answered: one or two may be long ones; for how long at least, s, and how many times a usual answer.
const SEVERAL: usize = 3;
const STOOD: f64 = 0.1;
const MUCH_LONGER: f64 = 10.0;

pub(crate) fn reason(code: &str, sentence: String) -> Vec<Reason> {
    vec![Reason { code: code.into(), sentence }]
}

/// Whether there is too little to say anything.
pub(crate) fn too_few(verdict: &Verdict) -> Vec<Reason> {
    if verdict.corrected.p99.is_some() {
        return Vec::new();
    }
    let (counted, warm_up) = verdict.judged;
    let more = match verdict.rate {
        // How long somebody else's generator goes on is its own affair.
        rate if rate > 0.0 && verdict.sees_answers => {
            format!(", which is {} at this rate", lasting(1000.0 / rate + warm_up as f64))
        }
        _ => String::new(),
    };
    let after = if warm_up > 0 { " after the warm-up" } else { "" };
    reason("few-answers", format!("{counted} answers{after}; a p99 needs 1,000{more}"))
}

/// Of all that was due, what failed for another reason than the client's own, or was answered with where else to ask; enough of it
/// comes before all that the client did not do well.
pub(crate) fn fails(run: &Run) -> bool {
    // A client that is full makes answers late by itself.
    let late = run.failures.get(&Failure::Timeout).copied().unwrap_or_default();
    let by_client = if is_full(run) { late } else { 0 };
    (run.failed_there() - by_client + led_elsewhere(run)) as f64 > MISSING * run.due.max(1) as f64
}

/// Most of the failures, in words.
fn worst(run: &Run) -> String {
    let status = run.statuses.iter().filter(|entry| *entry.0 >= 400).max_by_key(|entry| entry.1);
    match (run.failures.iter().max_by_key(|entry| entry.1).map(|entry| *entry.0), status) {
        (Some(Failure::Status), Some((status, _))) => format!("most of them with status {status}"),
        (Some(failure), _) => format!("most of them {}", words(failure)),
        (None, _) => String::new(),
    }
}

/// Causes that lie in the network stack between a client and its service: neither one's own speed.
const BETWEEN: [&str; 7] = [
    "conntrack-full",
    "time-wait-collision",
    "no-return-path",
    "port-exhaustion",
    "accept-queue-full",
    "packet-loss",
    "link-saturated",
];

/// Whether a cause, by its id, is neither the client's nor the service's own speed.
pub fn is_between(cause: &str) -> bool {
    BETWEEN.contains(&cause)
}

/// The same of a cause that the service is accused of: it runs out of ports where it asks somebody itself, and that is its own affair.
pub fn is_between_at_service(cause: &str) -> bool {
    is_between(cause) && cause != "port-exhaustion"
}

/// What the numbers seem to say and do not.
pub(crate) fn misleads(verdict: &Verdict, run: &Run) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = run.between.iter().chain(&run.mixed).cloned().collect();
    if let Some(ceiling) = run.opening.ceiling {
        let sentence = format!(
            "{ceiling} connections a second were asked for again, as many as there are at a time: each stood for TCP's timer of \
             1 s, and no service is measured by that; with another number of connections the ceiling moves"
        );
        reasons.extend(reason("ceiling", sentence));
    }
    let failed = run.failed() as f64 / run.due.max(1) as f64;
    if failed > FAILED {
        let sentence = format!("{:.1} % of requests failed, {}; they are in no percentile", failed * 100.0, worst(run));
        reasons.extend(reason("errors", sentence));
    }
    reasons.extend(verdict.takes.filter(|_| failed > FAILED).map(|takes| not_taken(run, takes)));
    reasons.extend(sent_again(run, true));
    reasons.extend(redirects(run));
    reasons.extend(queued(verdict, run, failed));
    reasons.extend(omitted(verdict, run, true));
    reasons.extend(stood(verdict, run).into_iter().filter(|_| hides(run)));
    if verdict.phases.len() > 1 && !verdict.phases.iter().any(|phase| phase.is_warm_up) {
        reasons.extend(reason("phases", in_phases(&verdict.phases)));
    }
    reasons
}

/// What is to be known, without being wrong.
pub(crate) fn remarks(verdict: &Verdict, run: &Run) -> Vec<Reason> {
    let mut remarks = Vec::new();
    if let Some(warm) = verdict.phases.iter().find(|phase| phase.is_warm_up) {
        let sentence = format!("the first {} s were different and are left out as a warm-up", warm.to);
        remarks.extend(reason("warm-up", sentence));
    }
    remarks.extend([unanswered(run), sent_again(run, false), connection_each(verdict, run)].concat());
    remarks.extend(not_seen(run));
    if run.is_closed == Some(true) {
        let sentence = "each connection waited for its answer before it asked again: this finds a limit, of the service or of so many \
                        connections; clients who come by themselves wait longer, which --rate shows";
        remarks.extend(reason("closed-loop", sentence.into()));
    }
    remarks.extend(stood(verdict, run).into_iter().filter(|_| !hides(run)));
    remarks.extend(omitted(verdict, run, false));
    remarks.extend(run.noted.iter().cloned());
    if run.is_sampled() {
        let sentence = format!(
            "sockets of this host are so busy that requests were followed for {:.1} of {:.1} s; counts are of that time",
            run.seen.as_secs_f64(),
            run.length.as_secs_f64()
        );
        remarks.extend(reason("sampled", sentence));
    }
    if let Some(by) = run.ended {
        remarks.extend(reason("ended-early", by.words(verdict.length)));
    }
    remarks
}

/// What is not seen of the answers that somebody else's generator gets.
fn not_seen(run: &Run) -> Vec<Reason> {
    if run.sees_answers {
        return Vec::new();
    }
    let sentence = match run.sees_errors {
        true => "whether answers were whole is not seen; those that report an error count as failed",
        false => {
            "whether answers were whole, and what they said, is not seen; what the generator says of errors counts"
        }
    };
    let estimated = run.looked.map(|(looked, good)| Reason {
        code: "estimated".into(),
        sentence: format!(
            "so many answers came that it was looked at what {:.1} % of them say: how many failed is an estimate, and the others are \
             known within {:.0} %",
            looked * 100.0,
            200.0 / (good.max(1) as f64).sqrt()
        ),
    });
    reason("answers-not-seen", sentence.into()).into_iter().chain(estimated).collect()
}

/// Whether a standstill is in few of its numbers: who waits for an answer asks nothing meanwhile.
pub(crate) fn hides(run: &Run) -> bool {
    run.is_closed == Some(true) && run.sees_answers
}

/// That nobody was answered for a time in which several waited, if that is much longer than an answer usually takes.
pub(crate) fn stood(verdict: &Verdict, run: &Run) -> Vec<Reason> {
    let Stood { length, from, waiting } = run.stood;
    // Its own pause is nobody's standstill.
    if run.lag.quantile(1.0).is_some_and(|lag| 2.0 * lag >= length.as_secs_f64()) {
        return Vec::new();
    }
    let (length, usual) = (length.as_secs_f64(), verdict.seconds.p50.unwrap_or(f64::INFINITY));
    if waiting < SEVERAL || length < STOOD || length < MUCH_LONGER * usual {
        return Vec::new();
    }
    let sentence = format!(
        "nobody was answered for {}, from {:.1} s on, while {waiting} requests waited",
        time(length),
        from.as_secs_f64()
    );
    reason("stood-still", sentence)
}

/// What those wait for who come by themselves, beside what a generator counts that waits for answers. This program counts both: of
/// itself it is a remark, and of another one that prints less than a part of the truth a reason.
fn omitted(verdict: &Verdict, run: &Run, is_reason: bool) -> Vec<Reason> {
    let both = |name, of: fn(&Percentiles) -> Option<f64>| Some((name, of(&verdict.seconds)?, of(&verdict.corrected)?));
    let percentiles = [both("p99", |it| it.p99), both("p90", |it| it.p90)].into_iter().flatten();
    let mut omitted = percentiles.filter(|(_, sent, due)| *due > QUEUED * sent && due - sent > WAITED);
    let Some((name, sent, due)) = omitted.next() else { return Vec::new() };
    if is_reason != (run.planned.is_none() && due > HIDDEN * sent) {
        return Vec::new();
    }
    let sentence =
        format!("who counts from when a request was sent gets a {name} of {} instead of {}", time(sent), time(due));
    reason("coordinated-omission", sentence)
}

/// Answers that only say where else to ask: nobody follows them here, and they say nothing of what is there.
fn redirects(run: &Run) -> Vec<Reason> {
    let share = led_elsewhere(run) as f64 / run.due.max(1) as f64;
    if share <= FAILED {
        return Vec::new();
    }
    let followed = match redirected(run).max_by_key(|it| it.1) {
        Some((status, _)) => format!(", most of them with status {status}, which nobody followed"),
        None => String::new(),
    };
    let sentence = format!("{:.1} % of the answers were redirects{followed}: ask where they lead to", share * 100.0);
    reason("redirects", sentence)
}

/// Answers that only say where else to ask, of this program's own load or of another's.
fn led_elsewhere(run: &Run) -> u64 {
    run.elsewhere + redirected(run).map(|(_, count)| count).sum::<u64>()
}

/// The statuses of redirects, and how many had each.
fn redirected(run: &Run) -> impl Iterator<Item = (u16, u64)> {
    redirects_among(&run.statuses)
}

/// Those of some statuses that are redirects.
pub(crate) fn redirects_among(statuses: &BTreeMap<u16, u64>) -> impl Iterator<Item = (u16, u64)> {
    let is_redirect = |status: u16| (300..400).contains(&status) && status != NOT_MODIFIED;
    statuses.iter().map(|(status, count)| (*status, *count)).filter(move |(status, _)| is_redirect(*status))
}

/// Requests that nobody answered in time, if they are too few to be a failure of the load: they are slower than all that were, and would
/// be the last ones of any percentile.
fn unanswered(run: &Run) -> Vec<Reason> {
    let many = run.failures.get(&Failure::Timeout).copied().unwrap_or_default();
    if many == 0 || run.failed() as f64 > FAILED * run.due as f64 {
        return Vec::new();
    }
    let sentence = format!(
        "{many} of {} requests got no answer in time: they are slower than all that did, and in no percentile",
        run.due
    );
    reason("unanswered", sentence)
}

/// The status of an answer that the client has already: it is one.
const NOT_MODIFIED: u16 = 304;

/// Requests that crossed the end of their connection; they are a remark, or as many of them as failures are told, a reason. Whoever
/// does not send again has lost them.
fn sent_again(run: &Run, is_reason: bool) -> Vec<Reason> {
    let again = run.sent_again;
    if again == 0 || is_reason != (again as f64 > FAILED * run.due as f64) {
        return Vec::new();
    }
    let sentence = format!(
        "{again} requests were sent once more, because the service closed the connection as they came; they are no errors here, \
         and are for clients who do not try again"
    );
    reason("sent-again", sentence)
}

/// Whether each request had a connection of its own.
fn connection_each(verdict: &Verdict, run: &Run) -> Vec<Reason> {
    let asked = run.opening.asked;
    let each = run.opening.each(verdict.due, run.seen, run.length);
    if asked < MANY_CONNECTIONS || !(EACH..=1.0 / EACH).contains(&each) {
        return Vec::new();
    }
    let sentence = format!(
        "{asked} connections were asked for where it runs, one for each request, all from one host: thousands of clients, or clients that \
         keep theirs, are another load"
    );
    reason("connection-each", sentence)
}

fn in_phases(phases: &[Phase]) -> String {
    let one = |phase: &Phase| {
        let usual = match phase.corrected.p50 {
            Some(p50) => format!(", p50 {}", time(p50)),
            // Too few for it, or no lengths are given.
            None if phase.rate > 0.0 => String::new(),
            None => ", no answers".into(),
        };
        format!("{} to {} s: {}/s{usual}", phase.from, phase.to, rounded(phase.rate))
    };
    let all: Vec<String> = phases.iter().map(one).collect();
    format!("it did not go alike all the time ({}); a percentile over both is neither", all.join("; "))
}

/// A failure in words.
pub fn words(failure: Failure) -> &'static str {
    match failure {
        Failure::Refused => "connections refused",
        Failure::Reset => "connections reset",
        Failure::Closed => "connections closed before the answer was whole",
        Failure::Timeout => "without an answer in time",
        Failure::Unsent => "never sent, because the client was behind by more than their timeout",
        Failure::NoPort => "without a local port",
        Failure::NoDescriptor => "without a file descriptor",
        Failure::Garbage => "answers that were none",
        Failure::Unreachable => "unreachable",
        Failure::Status => "answers that report an error",
        Failure::Other => "other errors",
    }
}

/// How to load for so long, s, at least.
pub(crate) fn lasting(seconds: f64) -> String {
    let longest = LONGEST.as_secs_f64();
    if seconds > longest { "longer than a load may last".into() } else { format!("--for {:.0}s", seconds.ceil()) }
}

/// A rate, to the whole request from ten a second on, or where it is one.
pub fn rounded(rate: f64) -> String {
    if rate < 10.0 && rate.fract() != 0.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

/// A length of time, in the unit that fits it.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s < 999.5e-6 => format!("{:.0} µs", s * 1e6),
        s if s < 9.95e-3 => format!("{:.2} ms", s * 1e3),
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}
