// SPDX-License-Identifier: Apache-2.0
//! The rules: one cause, its thresholds, its look-alikes and its remedy in one file each.
//!
//! A rule asks facts, judgement and remarks, and no other rule; only the judge asks rules.
//!
//! To add one: a file here, a `mod` line and a line in [`RULES`]. Rules that accuse are asked in
//! any order; the neutral ones in the order of the list, when nobody is accused.

use crate::answer::{Gap, Measured, Reason};
use crate::case::Case;
use crate::facts::quality::Quality;
use crate::statement::Statement;
use crate::verdict::{Finding, evidence};

/// What `docs/causes` says of a cause: one text for who reads documents and for `wakewalk explain`.
macro_rules! explain {
    ($cause:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/causes/", $cause, ".md"))
    };
}

mod accept_queue_full;
mod at_capacity;
mod blocked_writer;
mod busy_poll;
mod connection_churn;
mod conntrack_full;
mod cpu_steal;
mod cpu_throttled;
mod disk_wait;
mod event_loop_blocked;
mod fd_exhausted;
mod healthy;
mod hot_code;
mod link_saturated;
mod memory_pressure;
mod nagle_delayed_ack;
mod no_return_path;
mod not_determined;
mod packet_loss;
mod pool_exhausted;
mod port_exhaustion;
mod receiver_limited;
mod run_queue_wait;
mod runtime_pause;
mod send_buffer_limited;
mod sleep_in_path;
mod slow_dependency;
mod slow_dns;
mod slow_start;
mod time_wait_collision;
mod traffic_stopped;
mod udp_receive_drops;
mod user_lock_contention;

/// All rules.
pub(crate) static RULES: &[&Rule] = &[
    &busy_poll::RULE,
    &hot_code::RULE,
    &run_queue_wait::RULE,
    &cpu_throttled::RULE,
    &cpu_steal::RULE,
    &slow_dependency::RULE,
    &sleep_in_path::RULE,
    &user_lock_contention::RULE,
    &blocked_writer::RULE,
    &disk_wait::RULE,
    &memory_pressure::RULE,
    &slow_dns::RULE,
    &pool_exhausted::RULE,
    &event_loop_blocked::RULE,
    &accept_queue_full::RULE,
    &conntrack_full::RULE,
    &fd_exhausted::RULE,
    &port_exhaustion::RULE,
    &udp_receive_drops::RULE,
    &time_wait_collision::RULE,
    &no_return_path::RULE,
    &packet_loss::RULE,
    &runtime_pause::RULE,
    &nagle_delayed_ack::RULE,
    &receiver_limited::RULE,
    &send_buffer_limited::RULE,
    &link_saturated::RULE,
    &slow_start::RULE,
    &connection_churn::RULE,
    &traffic_stopped::RULE,
    &not_determined::RULE,
    &at_capacity::RULE,
    &healthy::RULE,
];

/// What an accusing rule says, unless it could not look.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// This is a cause, and what to say about it first.
    Found(Box<Finding>, Statement),
    /// This is not.
    RuledOut(NotIt),
}

/// Why a cause is not it, in words and for programs, and whether it could have been.
#[derive(Clone, Debug)]
pub(crate) struct NotIt {
    pub why: String,
    pub could_be: bool,
    pub reason: Reason,
    pub measured: Option<Measured>,
}

/// A rule's answer; the error is what it could not look at.
pub(crate) type Checked = Result<Outcome, Gap>;

/// How a rule is asked.
pub(crate) enum Check {
    /// Accuses somebody, rules it out, or could not look.
    Accuses(fn(&Case) -> Checked),
    /// Speaks when nobody is accused, knowing what could not be looked at.
    Neutral(fn(&Case, &[Gap]) -> Option<Statement>),
}

/// One cause.
pub(crate) struct Rule {
    /// Its public, stable id.
    pub cause: &'static str,
    /// What people should know about it: its page of `docs/causes`.
    pub explain: &'static str,
    /// The opinion.
    pub check: Check,
}

impl Rule {
    /// What people should know about it.
    pub(crate) fn explained(&self) -> Explain {
        Explain::read(self.explain)
    }

    /// A finding of this cause, with as much confidence as so many independent sources earn. What it says is to be filled in.
    pub(crate) fn finding(&self, case: &Case, sources: usize) -> Finding {
        Finding { cause: self.cause.into(), confidence: confidence(case, sources), ..Finding::default() }
    }
}

/// A cause in words, for `wakewalk explain`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explain {
    /// What it means.
    pub means: String,
    /// How it is recognised.
    pub recognised_by: String,
    /// What to do about it.
    pub what_to_do: String,
    /// What it must not be mistaken for.
    pub look_alikes: String,
}

impl Explain {
    /// Reads a page: a title, and four sections under headings of their own. Their paragraphs stay apart.
    fn read(page: &str) -> Self {
        let joined = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut sections = page.split("\n## ").skip(1).map(|section| {
            let (_, text) = section.split_once('\n').unwrap_or_default();
            text.trim().split("\n\n").map(joined).collect::<Vec<_>>().join("\n\n")
        });
        let mut next = || sections.next().unwrap_or_default();
        Self { means: next(), recognised_by: next(), what_to_do: next(), look_alikes: next() }
    }
}

/// Ids of all causes that this version can name.
pub fn causes() -> Vec<&'static str> {
    RULES.iter().map(|r| r.cause).collect()
}

/// The explanation of a cause; none if this version does not know it.
pub fn explain(cause: &str) -> Option<Explain> {
    RULES.iter().find(|r| r.cause == cause).map(|r| r.explained())
}

/// Of what makes a finding: less is what any service does, and no reader wonders about it.
const COULD_BE: f64 = 0.1;

fn found(finding: Finding, headline: impl Into<String>, advice: impl Into<String>) -> Checked {
    Ok(Outcome::Found(Box::new(finding), Statement::short(headline, advice)))
}

fn not_it(reason: Reason, measured: Option<Measured>, could_be: bool, why: impl Into<String>) -> Checked {
    Ok(Outcome::RuledOut(NotIt { why: why.into(), could_be, reason, measured }))
}

/// It looked like one, and something else stands behind it, or nobody waits for it.
fn explained(why: impl Into<String>) -> Checked {
    not_it(Reason::Explained, None, true, why)
}

/// Nothing of it was seen.
fn absent(why: impl Into<String>) -> Checked {
    not_it(Reason::Absent, None, false, why)
}

/// Less of it was seen than makes a finding.
fn too_little(seen: Measured, why: impl Into<String>) -> Checked {
    let could_be = seen.reached() >= COULD_BE;
    not_it(Reason::TooLittle, Some(seen), could_be, why)
}

/// It was there, but for too short a time each.
fn too_short(each: Measured, why: impl Into<String>) -> Checked {
    not_it(Reason::TooShort, Some(each), true, why)
}

/// Confidence from the number of independent sources that agree: two make it high, unless more
/// than 1 % of some evidence was lost or a tenth of the threads' time is not accounted for.
pub(crate) fn confidence(case: &Case, sources: usize) -> String {
    let clean = case
        .fact::<Quality>()
        .is_ok_and(|q| q.worst_loss < 0.01 && (q.coverage.thread_time == 0.0 || q.coverage.thread_time >= 0.9));
    match sources {
        0 => "low",
        2.. if clean => "high",
        _ => "medium",
    }
    .to_string()
}

/// Asking one rule about a recording written as text.
#[cfg(test)]
mod asking {
    use super::*;

    fn ask(rule: &Rule, text: &str) -> Checked {
        let recording = recording::text::parse(text).unwrap();
        match rule.check {
            Check::Accuses(check) => check(&Case::new(&recording)),
            Check::Neutral(_) => panic!("{} accuses nobody", rule.cause),
        }
    }

    pub fn found(rule: &Rule, text: &str) -> Finding {
        match ask(rule, text) {
            Ok(Outcome::Found(finding, said)) => {
                for line in [&said.headline, &said.advice] {
                    assert!(!line.is_empty() && line.len() < 110, "one short line: {line}");
                }
                *finding
            }
            other => panic!("{} should be found: {other:?}", rule.cause),
        }
    }

    pub fn silent(rule: &Rule, text: &str) -> String {
        match ask(rule, text) {
            Ok(Outcome::RuledOut(not_it)) => not_it.why,
            other => panic!("{} should be ruled out: {other:?}", rule.cause),
        }
    }

    pub fn gap(rule: &Rule, text: &str) -> Gap {
        match ask(rule, text) {
            Err(gap) => gap,
            other => panic!("{} should be a gap: {other:?}", rule.cause),
        }
    }

    pub fn stated(rule: &Rule, text: &str, gaps: &[Gap]) -> Option<Statement> {
        let recording = recording::text::parse(text).unwrap();
        match rule.check {
            Check::Neutral(check) => check(&Case::new(&recording), gaps),
            Check::Accuses(_) => panic!("{} accuses", rule.cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_explained_once() {
        for cause in causes() {
            let e = explain(cause).unwrap();
            for text in [e.means, e.recognised_by, e.what_to_do, e.look_alikes] {
                assert!(text.len() > 20 && text.ends_with('.'), "{cause}: {text}");
            }
            let page = RULES.iter().find(|r| r.cause == cause).unwrap().explain;
            assert_eq!(page.lines().next(), Some(&*format!("# {cause}")));
            assert_eq!(page.lines().filter(|line| line.starts_with('#')).count(), 5, "{cause}: a title, four headings");
            assert_eq!(causes().iter().filter(|c| **c == cause).count(), 1);
        }
        assert!(explain("nonsense").is_none());
    }
}
