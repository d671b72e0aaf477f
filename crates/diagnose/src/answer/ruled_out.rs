// SPDX-License-Identifier: Apache-2.0
//! A cause that is not it, and the number that says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::statistics::ratio;

/// A cause that is not it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RuledOut {
    /// Cause id.
    pub cause: String,
    /// Why not, with the number.
    pub why: String,
    /// It could have been: at least a tenth of what makes it a finding was seen, or it looked like one. These come first.
    #[serde(default)]
    pub could_be: bool,
    /// Why not, for programs.
    #[serde(default)]
    pub reason: Reason,
    /// The number that decided, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// Why a cause is not it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Nothing of it was seen: what would be measured is 0, and left out.
    #[default]
    Absent,
    /// Less of it was seen than makes a finding.
    TooLittle,
    /// Enough of it, but for too short a time each for a request to feel it.
    TooShort,
    /// It was seen, and something else stands behind it, or nobody waits for it.
    Explained,
}

/// Of what a number is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// 0 to 1.
    #[default]
    Share,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// CPUs, on average.
    Cores,
    /// System calls: empty ones for each that found something.
    Calls,
    /// Waits of threads.
    Waits,
    /// Periods of a CPU quota.
    Periods,
    /// Handshakes of TCP.
    Handshakes,
    /// Packets.
    Packets,
    /// Segments of TCP.
    Segments,
    /// Datagrams of UDP.
    Datagrams,
    /// Requests.
    Requests,
    /// Moments at which it was looked.
    Looks,
    /// Kinds of what was seen.
    Kinds,
}

/// A number against its bound: of a cause that is ruled out, the least that would make it a finding; of a gap, the least
/// that is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// What was measured.
    pub value: f64,
    /// What it is held against.
    pub bound: f64,
    /// Unit of both.
    pub unit: Unit,
}

impl Measured {
    /// A number and its bound, in `unit`.
    #[must_use]
    pub fn new(value: f64, bound: f64, unit: Unit) -> Self {
        // JSON has no other numbers.
        Self { value: if value.is_finite() { value } else { 0.0 }, bound, unit }
    }

    /// How much of the bound it reaches.
    #[must_use]
    pub fn reached(&self) -> f64 {
        ratio(self.value, self.bound)
    }

    /// Of what a finding needs all of, what is farthest from it; none = all of it is there.
    #[must_use]
    pub fn farthest(needed: impl IntoIterator<Item = Self>) -> Option<Self> {
        needed.into_iter().filter(|one| one.reached() < 1.0).min_by(|a, b| a.reached().total_cmp(&b.reached()))
    }
}
