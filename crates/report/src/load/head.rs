// SPDX-License-Identifier: Apache-2.0
//! The answer before everything else: what the numbers of a load are worth, why, and what to do about it.

use load::{Verdict, Word, rounded};

use crate::head::{Head, Labels};
use crate::numbers;
use crate::printable;

use super::words::{self, word};
use super::{Answer, sentence};

const NUMBERS: Labels = Labels { terminal: ["What", "Load", "Do"], page: ["Numbers", "Do"] };
const WHY: Labels = Labels { terminal: ["What", "Why", "Do"], page: ["Why", "Do"] };

/// What helps, by the first reason that a verdict has.
const TO_DO: &[(&str, &str)] = &[
    ("late", ELSEWHERE),
    ("client-cpu", ELSEWHERE),
    ("client-starved", ELSEWHERE),
    ("no-port", "Let connections come from more addresses, or use each of them for more than one request."),
    ("no-descriptor", "Allow the generator more open files, or use fewer connections."),
    ("few-answers", "Load for longer."),
    ("redirects", "Ask where the redirects lead to."),
    (
        "sent-again",
        "See why the service closes connections over which it has just been asked: its idle timeout, or its end.",
    ),
    ("errors", "Find out why requests fail before you look at how long the others took."),
    ("over-capacity", "Ask for less: only below the limit, which --sweep finds, do response times say something."),
    ("too-short", "Load for ten times as long as an answer takes."),
    ("connections", "Give it more connections, if those who come in earnest have more."),
    (
        "coordinated-omission",
        "Count from when requests are due, which --rate does: this generator does not ask while it waits.",
    ),
    ("ceiling", "See what keeps connections from being opened: wakewalk diagnose the service while it is loaded."),
    ("unsent", ELSEWHERE),
    ("not-taken", "Use no more connections than it takes, or give it more workers: others wait for one to be closed."),
    ("stood-still", "Find out what the service did then (--diagnose); --rate asks as those do who come by themselves."),
    (
        "not-told-apart",
        "Use a generator that has one request under way on each connection, or `wakewalk load URL`: then lengths are seen.",
    ),
    ("handshakes", "Keep connections open, load without TLS, or by `wakewalk load URL`: then lengths are seen."),
    ("phases", "Look at each phase for itself, and load for longer than it takes to settle."),
];
const ELSEWHERE: &str =
    "Load from another machine, give the generator a CPU of its own, or ask for fewer requests a second.";

/// The head of a load.
pub fn head(answer: &Answer) -> Head {
    let clean = |text: &str| printable::text(text).into_owned();
    let verdict = &answer.verdict;
    let (cause, what, tone) = word(verdict);
    let why = verdict.reasons.first().filter(|_| verdict.verdict != Word::Valid);
    Head {
        labels: if why.is_some() { &WHY } else { &NUMBERS },
        cause: cause.into(),
        confidence: String::new(),
        tone,
        what: what.into(),
        how_much: clean(&why.map_or_else(|| percentiles(verdict), |reason| sentence(&reason.sentence))),
        figure: figure(verdict),
        to_do: clean(&to_do(answer)),
        context: context(answer).iter().map(|part| clean(part)).collect(),
    }
}

fn percentiles(verdict: &Verdict) -> String {
    let known = [("p50", verdict.corrected.p50), ("p90", verdict.corrected.p90), ("p99", verdict.corrected.p99)];
    let known = known.iter().filter_map(|(name, value)| Some(format!("{name} {}", numbers::seconds((*value)?))));
    format!("{}, from when a request was due.", known.collect::<Vec<_>>().join(", "))
}

/// The share that breaks the promise, or of a load that is worth it its p99.
fn figure(verdict: &Verdict) -> Option<(String, String)> {
    if let Some(slo) = verdict.slo {
        let what = format!("of requests over {} or without an answer", numbers::seconds(slo.seconds));
        return Some((numbers::share(slo.broken), what));
    }
    let p99 = verdict.corrected.p99.filter(|_| verdict.verdict == Word::Valid)?;
    Some((numbers::seconds(p99), "is the p99".into()))
}

fn to_do(answer: &Answer) -> String {
    let verdict = &answer.verdict;
    let code = verdict.reasons.first().map_or("", |reason| reason.code.as_str());
    if let Some((_, words)) = TO_DO.iter().find(|(of, _)| verdict.verdict != Word::Valid && *of == code) {
        return (*words).into();
    }
    if let Some(explain) = diagnose::explain(code).filter(|_| load::is_between(code)) {
        return explain.what_to_do;
    }
    match &answer.service {
        _ if verdict.verdict != Word::Valid => "See why before you use these numbers.".into(),
        Some(service) if !service.advice.is_empty() => sentence(&service.advice),
        _ if verdict.planned.is_some() => {
            "Nothing: the load was sound. --sweep finds where the limit is, --diagnose what the service does meanwhile."
                .into()
        }
        _ => "Nothing: the load was sound.".into(),
    }
}

fn context(answer: &Answer) -> Vec<String> {
    let verdict = &answer.verdict;
    let asked = verdict.planned.map(|planned| format!("{}/s asked", rounded(planned)));
    let answered = words::rate(verdict).map(|rate| format!("{rate} answered"));
    let counts =
        format!("{} of {} requests", numbers::number(verdict.answered as f64), numbers::number(verdict.due as f64));
    [Some(answer.load.clone()), asked, answered, Some(counts), Some(numbers::seconds(verdict.length))]
        .into_iter()
        .flatten()
        .collect()
}
