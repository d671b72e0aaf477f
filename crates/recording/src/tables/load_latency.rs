// SPDX-License-Identifier: Apache-2.0
//! How long the answers of a load took.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answers of about one length to what was due in one second of a load; only of a load (`load --save`). Those of several rows
/// add up, so that every percentile of any part of the load can be told from them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoadLatency {
    /// Which load of a sweep, as in `load_second`.
    pub step: u32,
    /// Requests a second that were planned, as in `load_second`.
    pub rate: Option<f64>,
    /// End of the second in which they were due, ns after the first load began.
    pub t_ns: u64,
    /// What their length is from: `due` = when the request should have been sent, `sent` = when it was. Of somebody else's
    /// generator, `due` has those besides that it would have asked while it stood still.
    pub since: String,
    /// The shortest length that counts here, ns. Lengths are told apart within 1 %.
    pub from_ns: u64,
    /// The longest, ns.
    pub to_ns: u64,
    /// How many were so long.
    pub count: u64,
}
