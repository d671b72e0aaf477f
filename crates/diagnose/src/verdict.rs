// SPDX-License-Identifier: Apache-2.0
//! The verdict: the public, stable contract of `wakewalk diagnose --json`.
//!
//! Every number here was computed from a recording; nothing here is text for one output only.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::comparison::Comparison;
pub use crate::answer::{
    Cost, Coverage, Gap, Host, Measured, PathPart, Quantiles, Reason, RequestTimes, RuledOut, SCHEMA, Target, Unit,
    Unseen, Window,
};

/// The answer to one question about one target.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Version of this contract.
    pub schema: u32,
    /// `wakewalk 0.1.0`, the version that diagnosed.
    pub tool: String,
    /// The machine of the recording.
    pub host: Host,
    /// The service.
    pub target: Target,
    /// When it was observed.
    pub window: Window,
    /// What was asked about, or seen.
    pub symptom: Symptom,
    /// Cause id: `findings[0].cause`, or `healthy`, `at-capacity`, `not-determined`.
    pub verdict: String,
    /// The verdict in one line with a number, also where no finding accuses anybody.
    pub headline: String,
    /// What to do about it, in one line; for neutral verdicts the next limit or the next step.
    pub advice: String,
    /// More about a neutral verdict: where the time goes, what the next limit is; else empty.
    #[serde(default)]
    pub detail: String,
    /// Causes found, the root first, by explained time.
    pub findings: Vec<Finding>,
    /// Causes that were looked at and are not it; those that could have been come first.
    pub ruled_out: Vec<RuledOut>,
    /// Causes and facts that could not be looked at.
    pub gaps: Vec<Gap>,
    /// How long requests took, first at the port at which clients wait most; empty where none was seen.
    #[serde(default)]
    pub requests: Vec<RequestTimes>,
    /// Where the time went.
    pub ledger: Ledger,
    /// How much of the time the evidence covers.
    pub coverage: Coverage,
    /// What the capture cost.
    pub cost: Cost,
    /// Whether a promised response time was kept; left out where none was given, or no answer was seen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slo: Option<Slo>,
    /// The verdict of each part, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub timeline: Vec<Moment>,
    /// How it differs from the baseline; left out where none was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub comparison: Option<Comparison>,
}

/// What is explained.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Symptom {
    /// `cpu`, `response-time`, `errors`, `throughput` or `none-seen`.
    pub kind: String,
    /// Its size.
    pub value: f64,
    /// Unit of the size, `cores`.
    pub unit: String,
    /// The same number in the baseline, where there is one.
    pub baseline: Option<f64>,
    /// `sockets`, `client`, `user` or `counters`.
    pub source: String,
}

/// A promised response time, and how it was kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Slo {
    /// The promise.
    pub seconds: f64,
    /// Answers that took longer, of all at the endpoint that misses it most, 0 to 1.
    pub missed: f64,
    /// At most one in a hundred did.
    pub kept: bool,
}

/// What a part of a recording says by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// Where it begins, seconds from the window's start.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Its verdict, as for the whole.
    pub verdict: String,
    /// That in one line.
    pub headline: String,
    /// What its first finding explains, 0 to 1; null where nothing was found.
    pub share: Option<f64>,
    /// CPUs that the target used.
    pub cores: f64,
    /// Requests a second that clients began there, of those that were followed; null where connections were not.
    pub rate: Option<f64>,
    /// Response time at the endpoint at which clients wait most, seconds; null where no request was seen.
    pub p50: Option<f64>,
    /// The same that 99 % of the answers kept.
    pub p99: Option<f64>,
}

/// One cause that was found.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Cause id.
    pub cause: String,
    /// `high` (two independent sources agree, loss under 1 %), `medium`, `low`.
    pub confidence: String,
    /// One sentence with numbers and units.
    pub summary: String,
    /// Who.
    pub subject: Subject,
    /// How much it explains.
    pub explains: Explains,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// From the first wait to the cause.
    pub chain: Vec<Link>,
    /// What to do, with its price.
    pub remedy: String,
    /// What to run afterwards, and what should have changed.
    pub check: String,
    /// Nothing else leads to it, although it is a link in the middle elsewhere.
    #[serde(skip)]
    pub is_root: bool,
}

/// Who or what a finding is about; only what applies is set.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// Process id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<u32>,
    /// Thread id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tid: Option<u32>,
    /// Thread's command name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub comm: Option<String>,
    /// System call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub syscall: Option<String>,
    /// Its clients are accused, and not itself.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub clients: bool,
    /// The other end of the target's own connection, host and port; where its clients are accused, its own end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub socket: Option<String>,
    /// Function.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function: Option<String>,
    /// Cgroup.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cgroup: Option<String>,
}

/// How much of what a finding explains.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Explains {
    /// 0 to 1.
    pub share: f64,
    /// The whole that the share is of, `on-CPU time`.
    pub of: String,
    /// Seconds within the window.
    pub seconds: f64,
}

/// The whole where a finding is about connections that nobody has taken yet.
const OF_QUEUED: &str = "its clients' connections (those in the accept queue)";

/// The whole where a finding is about requests that got no answer.
const OF_HANGING: &str = "response time of those that hang";

impl Explains {
    /// All that those waited who got no answer.
    pub(crate) fn hanging(seconds: f64) -> Self {
        Self { share: 1.0, of: OF_HANGING.into(), seconds }
    }

    /// Connections that stand before accept(), as a share of them and of those that are served.
    pub(crate) fn queued(share: f64, seconds: f64) -> Self {
        Self { share, of: OF_QUEUED.into(), seconds }
    }

    /// Whether that is it: what answers tell says nothing of these.
    pub fn is_of_hanging(&self) -> bool {
        self.of == OF_HANGING
    }

    /// Whether it is of those who were not met yet: nor do they.
    pub fn is_of_queued(&self) -> bool {
        self.of == OF_QUEUED
    }
}

/// One piece of evidence.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What was measured.
    pub fact: String,
    /// Its value.
    pub value: f64,
    /// Unit of the value.
    pub unit: String,
    /// What a healthy service would show.
    pub expected: String,
    /// A command that shows the same without wakewalk.
    pub see_yourself: String,
}

/// What was measured, its value and unit, what a healthy service would show, and a command that shows the same.
pub(crate) fn evidence(
    fact: &str,
    value: f64,
    unit: &str,
    expected: &str,
    see_yourself: impl Into<String>,
) -> Evidence {
    Evidence {
        fact: fact.to_string(),
        // JSON has no other numbers.
        value: if value.is_finite() { value } else { 0.0 },
        unit: unit.to_string(),
        expected: expected.to_string(),
        see_yourself: see_yourself.into(),
    }
}

/// One link of a chain.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Thread, `proxy/8123`.
    pub who: String,
    /// What it waits on, or what it does.
    pub waits_on: String,
    /// For how long.
    pub seconds: f64,
    /// The program's functions that wait, innermost first; the kernel's where those are not known.
    pub stack: Vec<String>,
}

/// Where the time went, in seconds by line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Sum over the target's threads: `user`, `kernel`, `run_queue`, `preempted`, `throttled`,
    /// `blocked_socket_read` …, `wall`.
    pub threads: BTreeMap<String, f64>,
    /// Sum over the target's TCP connections, by who had to act next: `accepted_queued`, `accepted_read_wait`,
    /// `accepted_service`, `accepted_client` …, `made_peer`, `made_idle` …; `accepted_open` and `made_open` are the sums of
    /// their kinds. Empty where none were seen.
    pub connections: BTreeMap<String, f64>,
}
