// SPDX-License-Identifier: Apache-2.0
//! What was lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Events that a probe, ring or map could not keep in a slice, or for which the kernel skipped a program that was running already.
/// Written also when the count is 0, at least once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Loss {
    /// End of the slice, ns after the capture's start.
    pub t_ns: u64,
    /// What kind of events, `waits`; or a program that the kernel skipped.
    pub what: String,
    /// Events lost.
    pub count: u64,
    /// Events kept.
    pub kept: u64,
}
