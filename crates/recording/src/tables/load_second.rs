// SPDX-License-Identifier: Apache-2.0
//! A load by the second.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was due in one second of a load, and what came of it; only of a load (`load --save`). Percentiles are null where fewer
/// than ten answers lie beyond them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoadSecond {
    /// Which load of a sweep, in the order in which they were tried, from 0; 0 of a single load.
    pub step: u32,
    /// Requests a second that were planned; null = each was sent when the answer to the last one was there, or somebody else's
    /// plan is not known.
    pub rate: Option<f64>,
    /// End of the second, ns after the first load began.
    pub t_ns: u64,
    /// Requests that were due.
    pub due: u64,
    /// Those of them that were sent.
    pub sent: u64,
    /// Those that were answered, whenever.
    pub answered: u64,
    /// Those that failed.
    pub failed: u64,
    /// From when requests were due until their answers were whole: half took no longer, ns.
    pub p50_ns: Option<u64>,
    /// Nine in ten.
    pub p90_ns: Option<u64>,
    /// 99 in a hundred.
    pub p99_ns: Option<u64>,
    /// 999 in a thousand.
    pub p999_ns: Option<u64>,
    /// The longest; null = none was answered.
    pub longest_ns: Option<u64>,
    /// From when they were sent: half took no longer, ns.
    pub sent_p50_ns: Option<u64>,
    /// 99 in a hundred.
    pub sent_p99_ns: Option<u64>,
}
