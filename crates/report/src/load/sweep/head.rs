// SPDX-License-Identifier: Apache-2.0
//! The answer before everything else: the limit, the finding that matters most, and what to do about it.

use load::{Reason, Step, Sweep};

use crate::head::{Head, Labels};
use crate::load::{SweepAnswer, sentence};
use crate::numbers;
use crate::printable;
use crate::section::Tone;

use super::found;
use crate::load::words;

const LABELS: Labels = Labels { terminal: ["What", "Found", "Do"], page: ["Found", "Do"] };

/// Findings, the one first that changes most of what the others mean, and what to do about each; of an accused service its own
/// advice comes before.
const FINDINGS: &[(&str, &str)] = &[
    ("service-gone", "See whether the service has ended, and why: its log, and `dmesg` for one that was killed."),
    ("broken-off", "Mend that, and sweep again."),
    ("fails-from-the-start", "Find out why it fails; that needs no load."),
    ("redirects", "Ask where the redirects lead to."),
    (
        "few-connections",
        "More workers, or a keep-alive timeout that is shorter than what clients pause, let it take more clients.",
    ),
    ("too-short", "Give each load ten times as long as an answer takes (--for)."),
    ("over-from-the-start", "Begin lower."),
    ("client-limited", "Load from another machine, or give the generator a CPU of its own."),
    (
        "connections",
        "Allow it more connections (--connections) and open files (`ulimit -Hn`), or load from several machines.",
    ),
    ("latency-falls", "Diagnose the service while the lower one of the two loads is on it."),
    ("throughput-falls", "Let it refuse early what is over its limit: it spends on that what it could answer with."),
    (
        "promise-broken-at-low-load",
        "Diagnose the service while a load at which it is broken is on it: more CPUs or instances do not help there.",
    ),
    ("refuses", "If that limit is meant, this is it; else raise it, and sweep again for the service's own."),
    ("service", "Read what it did at each load."),
    ("cpu-floor", "Diagnose the service while nobody asks it."),
    ("promise", "Plan for less than the load up to which the promise is kept."),
    ("not-reached", "Sweep further."),
    ("more-connections", "Plan for less than the limit, and give clients as many connections as it takes."),
    ("ended-early", "Let it run to its end."),
];

/// Of those, the ones by which a limit is not what it seems.
const PARADOXES: [&str; 3] = ["latency-falls", "throughput-falls", "redirects"];

/// The head of a sweep.
pub fn head(answer: &SweepAnswer) -> Head {
    let clean = |text: &str| printable::text(text).into_owned();
    let sweep = &answer.sweep;
    let most = most_important(sweep);
    let is_paradox = most.is_some_and(|reason| PARADOXES.contains(&reason.code.as_str()));
    let (cause, tone) = match sweep.knee {
        Some(_) if !is_paradox => ("limit found", Tone::Good),
        Some(_) => ("limit found", Tone::Warn),
        None if most.is_some_and(|reason| reason.code == "client-limited") => ("client-limited", Tone::Bad),
        None => ("no limit found", Tone::Warn),
    };
    let found = most.map_or("Nothing that one would not expect.".into(), |reason| sentence(&reason.sentence));
    Head {
        labels: &LABELS,
        cause: cause.into(),
        confidence: String::new(),
        tone,
        what: found::limit(sweep.knee),
        how_much: clean(&found),
        figure: sweep
            .knee
            .map(|knee| (words::requests(knee.answered), "requests a second are answered at most".into())),
        to_do: clean(&to_do(sweep, most)),
        context: context(answer).iter().map(|part| clean(part)).collect(),
    }
}

fn most_important(sweep: &Sweep) -> Option<&Reason> {
    let place = |reason: &&Reason| FINDINGS.iter().position(|(code, _)| *code == reason.code).unwrap_or(usize::MAX);
    sweep.findings.iter().min_by_key(place)
}

fn to_do(sweep: &Sweep, most: Option<&Reason>) -> String {
    let Some(most) = most else {
        return "Plan for less than the limit: beyond it requests queue up for as long as the load lasts.".into();
    };
    let accused = sweep.knee.filter(|_| most.code == "service").and_then(|knee| {
        let near = |step: &&Step| step.rate == knee.not_sustained || step.rate == knee.sustained;
        let services = sweep.steps.iter().filter(near).filter_map(|step| step.service.as_ref());
        // Where nothing was determined, its advice says how to look further.
        let mut accused = services.filter(|service| service.verdict != "healthy");
        accused.find(|service| most.sentence.contains(&service.headline) && !service.advice.is_empty())
    });
    let words = FINDINGS.iter().find(|(code, _)| *code == most.code).map_or("", |(_, words)| words);
    accused.map_or(words.into(), |service| sentence(&service.advice))
}

fn context(answer: &SweepAnswer) -> Vec<String> {
    let steps = &answer.sweep.steps;
    let rates = steps.iter().map(|step| step.rate);
    let (least, most) = (rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max));
    let each = steps.first().map_or(String::new(), |step| format!(" of {}", numbers::seconds(step.verdict.length)));
    let [least, most] = [least, most].map(words::requests);
    vec![answer.load.clone(), format!("{} loads{each}", steps.len()), format!("{least} to {most} requests a second")]
}
