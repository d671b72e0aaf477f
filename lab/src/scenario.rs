// SPDX-License-Identifier: Apache-2.0
//! What a scenario is: a service with a known truth, and how a diagnosis of it is judged.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use diagnose::verdict::{Finding, Verdict};
use serde::Serialize;

use crate::builds::Build;
use crate::cell::Cell;

/// One service with a known fault, its healthy twin, and what a right verdict says about each.
pub struct Scenario {
    /// Its name; also of its folder, its recording and its fixture.
    pub name: &'static str,
    /// One sentence: the service, the load, the fault.
    pub about: &'static str,
    /// The truth about the faulty side.
    pub expected: Expected,
    /// The truth about the twin; none = the scenario is a control and has only one side.
    pub twin: Option<Expected>,
    /// What has to be built first.
    pub builds: &'static [Build],
    /// Folders of the repository whose change calls for a live run.
    pub folders: &'static [&'static str],
    /// Starts service and load in a cell, waits until the load is steady, and says how to name the
    /// service to wakewalk.
    pub stage: fn(&mut Cell, Side) -> Result<Aim>,
}

/// The side of a scenario that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// With the fault.
    Fault,
    /// The same service and load without it.
    Twin,
}

impl Scenario {
    /// The truth about one side.
    pub fn truth(&self, side: Side) -> Option<&Expected> {
        match side {
            Side::Fault => Some(&self.expected),
            Side::Twin => self.twin.as_ref(),
        }
    }

    /// Name of one side's recording and fixture.
    pub fn recording_name(&self, side: Side) -> String {
        match side {
            Side::Fault => self.name.to_string(),
            Side::Twin => format!("{}-twin", self.name),
        }
    }

    /// The sides that it has.
    pub fn sides(&self) -> impl Iterator<Item = Side> + '_ {
        [Side::Fault, Side::Twin].into_iter().filter(|&side| self.truth(side).is_some())
    }
}

/// How wakewalk is told which service to diagnose.
#[derive(Clone, Debug)]
pub enum Aim {
    /// A process.
    Pid(u32),
    /// A listener, wherever it is.
    Port(u16),
    /// A cgroup, by its folder.
    Cgroup(PathBuf),
    /// A command name.
    Comm(&'static str),
}

impl Aim {
    /// As arguments of `wakewalk diagnose`.
    pub fn args(&self) -> [OsString; 2] {
        match self {
            Self::Pid(pid) => ["--pid".into(), pid.to_string().into()],
            Self::Port(port) => ["--port".into(), port.to_string().into()],
            Self::Cgroup(path) => ["--cgroup".into(), path.into()],
            Self::Comm(name) => ["--comm".into(), name.into()],
        }
    }
}

/// A right verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// Cause ids that are right; the first is the one shown.
    pub verdicts: &'static [&'static str],
    /// Command name of the accused thread, where the truth is that precise.
    pub comm: Option<&'static str>,
    /// The accused system call.
    pub syscall: Option<&'static str>,
    /// Part of the accused function's name.
    pub function: Option<&'static str>,
    /// Beginning of the words for the end of the chain.
    pub end: Option<&'static str>,
    /// A line of the thread ledger that must be there with more than [`MIN_LINE`] of the threads' time; where nobody can be
    /// accused, that is what a right verdict shows.
    pub line: Option<&'static str>,
    /// A cause that must be among the findings too: a link in the middle, behind the root.
    pub also: Option<&'static str>,
    /// What is asked where answers are slow, `GET /reports/*`: its label must come first, and take [`APART`] times as long as the
    /// next one; [`NONE_APART`] = no label may. With either, requests are labelled (`--requests`).
    pub slow: Option<&'static str>,
    /// Words of the headline, where the truth has no cause of its own; where a cause is right too, of the verdict without one.
    pub says: Option<&'static str>,
}

/// No label is slow beside the others.
pub const NONE_APART: &str = "";

/// How much longer half of the slow requests take than half of the next ones.
const APART: f64 = 3.0;

/// Of all threads' time: idle threads have most of it.
const MIN_LINE: f64 = 0.03;

/// Nobody is at fault. Whether the service is also at its limit depends on how fast the host is.
pub const NEUTRAL: Expected = Expected {
    verdicts: NOBODY,
    comm: None,
    syscall: None,
    function: None,
    end: None,
    line: None,
    also: None,
    slow: None,
    says: None,
};

const NOBODY: &[&str] = &["healthy", "at-capacity"];

/// Verdicts that accuse nobody, right or not.
const NEUTRAL_ONES: &[&str] = &["healthy", "at-capacity", "not-determined"];

impl Expected {
    /// One right cause.
    pub const fn cause(verdicts: &'static [&'static str]) -> Self {
        Self { verdicts, ..NEUTRAL }
    }

    /// For the score table.
    pub fn label(&self) -> String {
        self.verdicts.join(" or ")
    }

    /// What is wrong with a verdict; none = it is right.
    pub fn objection(&self, verdict: &Verdict) -> Option<String> {
        if !self.verdicts.contains(&verdict.verdict.as_str()) {
            return Some(format!("expected {}, the verdict is {}", self.label(), verdict.verdict));
        }
        if let Some(objection) = self.line_objection(verdict).or_else(|| self.slow_objection(verdict)) {
            return Some(objection);
        }
        let is_neutral = NEUTRAL_ONES.contains(&verdict.verdict.as_str());
        let must_say = self.says.filter(|_| is_neutral || self.verdicts.len() == 1);
        if let Some(words) = must_say.filter(|words| !verdict.headline.contains(words)) {
            return Some(format!("expected the words {words:?}, the headline is {:?}", verdict.headline));
        }
        let first = verdict.findings.first();
        if is_neutral {
            return first.map(|f| format!("the verdict is {}, yet there is a finding: {}", verdict.verdict, f.cause));
        }
        let Some(finding) = first else { return Some(format!("{} without a finding", verdict.verdict)) };
        let is_missing = |cause: &&str| !verdict.findings.iter().any(|finding| finding.cause == *cause);
        if let Some(cause) = self.also.filter(is_missing) {
            return Some(format!("expected {cause} among the findings"));
        }
        self.subject_objection(finding)
    }

    fn line_objection(&self, verdict: &Verdict) -> Option<String> {
        let line = self.line?;
        let of = |name: &str| verdict.ledger.threads.get(name).copied().unwrap_or(0.0);
        let (got, wall) = (of(line), of("wall"));
        let little = got < wall * MIN_LINE;
        little.then(|| {
            format!("ledger line {line} is {got:.2} s of {wall:.2} s, expected {:.0} % at least", MIN_LINE * 100.0)
        })
    }

    fn slow_objection(&self, verdict: &Verdict) -> Option<String> {
        let wanted = self.slow?;
        let Some(asked) = verdict.requests.iter().find(|times| times.is_accepted() && !times.endpoints.is_empty())
        else {
            return Some("no request has a label".into());
        };
        let half = |at: usize| asked.endpoints.get(at).map_or(0.0, |times| times.seconds.p50);
        let first = &asked.endpoints[0].label;
        let is_apart = half(0) >= half(1) * APART;
        let is_right = if wanted == NONE_APART { !is_apart } else { is_apart && first == wanted };
        (!is_right).then(|| {
            format!("half of {first} take {:.5} s, of the next {:.5} s, expected {wanted:?}", half(0), half(1))
        })
    }

    fn subject_objection(&self, finding: &Finding) -> Option<String> {
        let subject = &finding.subject;
        let end = finding.chain.last().map(|link| link.waits_on.clone());
        let checks = [
            ("end of the chain", self.end, &end),
            ("thread", self.comm, &subject.comm),
            ("call", self.syscall, &subject.syscall),
            ("function", self.function, &subject.function),
        ];
        checks.into_iter().find_map(|(what, expected, got)| {
            let expected = expected?;
            let got = got.as_deref().unwrap_or("none");
            (!got.contains(expected)).then(|| format!("accused {what} is {got}, expected {expected}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(json: serde_json::Value) -> Verdict {
        let mut whole = serde_json::json!({
            "schema": 2, "tool": "", "host": {"name": "", "kernel": "", "cpus": 2, "virtualization": ""},
            "target": {"named": "", "pids": [], "comm": "", "listen": []},
            "window": {"start": "", "seconds": 1.0, "ended": ""},
            "symptom": {"kind": "cpu", "value": 0.0, "unit": "", "baseline": null, "source": ""},
            "headline": "", "advice": "", "findings": [], "ruled_out": [], "gaps": [],
            "ledger": {"threads": {}, "connections": {}},
            "coverage": {"thread_time": 1.0, "cpu_time": 1.0, "blocked_time": 1.0, "events_lost": 0},
            "cost": {"cpu_seconds": 0.0, "share_of_machine": 0.0, "peak_rss_bytes": 0,
                     "kernel_map_bytes": 0, "call_window_share": 0.0}
        });
        whole.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn finding(cause: &str, subject: serde_json::Value) -> serde_json::Value {
        serde_json::json!({"cause": cause, "confidence": "high", "summary": "", "subject": subject,
            "explains": {"share": 1.0, "of": "", "seconds": 1.0}, "evidence": [], "chain": [],
            "remedy": "", "check": ""})
    }

    const POLL: Expected = Expected { comm: Some("mio"), ..Expected::cause(&["busy-poll"]) };

    #[test]
    fn the_right_cause_with_the_right_subject_is_right() {
        let v = verdict(serde_json::json!({"verdict": "busy-poll",
            "findings": [finding("busy-poll", serde_json::json!({"comm": "mio-reactor"}))]}));
        assert_eq!(POLL.objection(&v), None);
    }

    #[test]
    fn the_right_cause_about_the_wrong_thread_is_wrong() {
        let v = verdict(serde_json::json!({"verdict": "busy-poll",
            "findings": [finding("busy-poll", serde_json::json!({"comm": "main"}))]}));
        assert_eq!(POLL.objection(&v).unwrap(), "accused thread is main, expected mio");
    }

    #[test]
    fn a_neutral_verdict_that_still_accuses_is_wrong() {
        let v = verdict(
            serde_json::json!({"verdict": "healthy", "findings": [finding("hot-code", serde_json::json!({}))]}),
        );
        assert!(NEUTRAL.objection(&v).unwrap().contains("yet there is a finding: hot-code"));
        assert_eq!(NEUTRAL.objection(&verdict(serde_json::json!({"verdict": "at-capacity"}))), None);
    }

    #[test]
    fn a_line_of_the_ledger_has_to_be_there() {
        let expected = Expected { line: Some("stopped"), ..Expected::cause(&["not-determined"]) };
        let v = |stopped: f64| {
            let threads = serde_json::json!({"threads": {"wall": 10.0, "stopped": stopped}, "connections": {}});
            verdict(serde_json::json!({"verdict": "not-determined", "ledger": threads}))
        };
        assert_eq!(expected.objection(&v(2.0)), None);
        assert!(expected.objection(&v(0.1)).unwrap().contains("ledger line stopped is 0.10 s of 10.00 s"));
    }

    #[test]
    fn words_that_have_to_be_said() {
        let expected = Expected { says: Some("turned away"), ..Expected::cause(&["not-determined"]) };
        let v = |headline: &str| verdict(serde_json::json!({"verdict": "not-determined", "headline": headline}));
        assert_eq!(expected.objection(&v("9 clients were turned away")), None);
        assert!(expected.objection(&v("nothing was found")).unwrap().contains("expected the words \"turned away\""));
    }

    #[test]
    fn the_slow_label_has_to_come_first_and_apart() {
        let v = |labels: &[(&str, f64)]| {
            let times = |(label, p50): &(&str, f64)| {
                let seconds = serde_json::json!({"p50": p50, "p90": 0.0, "p99": 0.0, "p999": 0.0, "mean": 0.0});
                serde_json::json!({"label": label, "protocol": "http", "exchanges": 9, "sampled": 9, "seconds": seconds, "share": 0.1})
            };
            let seconds = serde_json::json!({"p50": 0.0, "p90": 0.0, "p99": 0.0, "p999": 0.0, "mean": 0.0});
            let endpoints: Vec<_> = labels.iter().map(times).collect();
            verdict(serde_json::json!({"verdict": "healthy", "requests": [{"role": "accepted", "endpoint": "tcp 1",
                "exchanges": 9, "unanswered": 0, "mixed": false, "seconds": seconds, "stages": {}, "endpoints": endpoints}]}))
        };
        let slow = Expected { slow: Some("GET /slow"), ..NEUTRAL };
        assert_eq!(slow.objection(&v(&[("GET /slow", 0.03), ("GET /", 0.001)])), None);
        assert!(slow.objection(&v(&[("GET /", 0.03), ("GET /slow", 0.001)])).is_some());
        assert!(slow.objection(&v(&[("GET /slow", 0.002), ("GET /", 0.001)])).is_some());
        assert_eq!(slow.objection(&v(&[])).unwrap(), "no request has a label");
        let none = Expected { slow: Some(NONE_APART), ..NEUTRAL };
        assert_eq!(none.objection(&v(&[("GET /slow", 0.002), ("GET /", 0.001)])), None);
        assert!(none.objection(&v(&[("GET /slow", 0.03), ("GET /", 0.001)])).is_some());
    }

    #[test]
    fn a_wrong_cause_is_named() {
        let v = verdict(serde_json::json!({"verdict": "not-determined"}));
        assert_eq!(NEUTRAL.objection(&v).unwrap(), "expected healthy or at-capacity, the verdict is not-determined");
    }
}
