// SPDX-License-Identifier: Apache-2.0
//! The comparison: the public contract of `wakewalk diff --json`, and of the field `comparison` of a verdict
//! that was given a baseline. Side `a` is the one before, `b` the one after.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::{Gap, Host, Target, Window};

/// Why two recordings cannot be compared, as a sentence with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// What differs between two recordings, or two parts of one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of this contract.
    pub schema: u32,
    /// `wakewalk 0.1.0`, the version that compared.
    pub tool: String,
    /// Before.
    pub a: Side,
    /// After.
    pub b: Side,
    /// `changed`, or `no-difference`: none that the data can show.
    pub verdict: String,
    /// What changed, by how much, with its interval; or which difference would have been seen.
    pub headline: String,
    /// Whether the two sides did the same work: the load's change, and what costs are counted per.
    pub load: String,
    /// What else changed between the sides, by their inventories.
    pub besides: String,
    /// The operation that costs are divided by.
    pub operation: Operation,
    /// The few numbers that the answer rests on, then the many that explain it.
    pub measures: Vec<Measure>,
    /// Functions, by how much their CPU time changed.
    pub functions: Vec<Function>,
    /// What was set otherwise.
    pub inventory: Vec<Setting>,
    /// What to keep in mind.
    pub warnings: Vec<String>,
    /// What could not be compared.
    pub gaps: Vec<Gap>,
    /// How sure the intervals are.
    pub statistics: Statistics,
}

/// One side.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// How it was named, the folder and the window.
    pub label: String,
    /// The machine.
    pub host: Host,
    /// The service.
    pub target: Target,
    /// When it was observed.
    pub window: Window,
    /// Time slices.
    pub slices: usize,
    /// CPUs' worth of work of the service.
    pub cores: f64,
}

/// What the service does again and again.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// `answers`, `write-calls`, `data-segments`, `connections`, `datagrams`; `second` if no count of work is known.
    pub id: String,
    /// In words, `write call`, `second`.
    pub name: String,
    /// Why this one, or why none.
    pub why: String,
}

/// One number on both sides.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// Stable id, `cpu`, `user_cpu`, `polls_per_useful_event`.
    pub id: String,
    /// In words.
    pub label: String,
    /// `headline` (the answer rests on these), `ledger`, `calls`, `counters` or `machine`.
    pub group: String,
    /// `s` (of CPU or waiting time), `cores`, `share`, or what is counted.
    pub unit: String,
    /// What it is counted per: the operation's name, `second`, or nothing.
    pub per: String,
    /// The difference.
    #[serde(flatten)]
    pub difference: Difference,
}

/// One function's CPU time on both sides, in seconds for each operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Function {
    /// Name.
    pub name: String,
    /// File that it is in, or `kernel`.
    pub module: String,
    /// Its own work.
    pub own: Difference,
    /// With all that it called.
    pub inclusive: Difference,
}

/// Two values and how sure their difference is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Before.
    pub a: f64,
    /// After.
    pub b: f64,
    /// `b / a - 1`; none where `a` is 0.
    pub change: Option<f64>,
    /// Lower end of the simultaneous interval of `b - a`; none where there is not enough data to tell.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The interval excludes that nothing changed.
    pub changed: bool,
    /// The size of `b - a` that would have been found nine times of ten.
    pub detectable: Option<f64>,
}

impl Difference {
    /// A value relative to `a`; none where `a` is 0.
    pub fn relative(&self, value: f64) -> Option<f64> {
        (self.a > 0.0).then(|| value / self.a)
    }
}

/// Something that was set otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// In words, `net.core.somaxconn`, `build of streamd`.
    pub what: String,
    /// Before; none = it was not there.
    pub a: Option<String>,
    /// After; none = it is not there.
    pub b: Option<String>,
    /// It could be the reason for a difference. False for what differs between any two runs, such as the
    /// start of a process.
    pub counts: bool,
}

/// How the intervals were made.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Statistics {
    /// Chance that all intervals together hold the truth.
    pub confidence: f64,
    /// Slices in a block on either side.
    pub blocks: [usize; 2],
    /// Standard errors that CPU time must differ by.
    pub critical_cpu: f64,
    /// Standard errors that the other headline numbers must differ by, so that all are right at once.
    pub critical_headline: f64,
    /// The same for the many.
    pub critical_details: f64,
    /// Standard deviation of CPU time per operation between two runs of the same thing, beyond what their slices show;
    /// 0 for two parts of one run.
    pub between_runs: f64,
    /// How much more time the fixed piece of work took on side B, `b / a - 1`; 0 where it is not known.
    pub machine_slower: f64,
}
