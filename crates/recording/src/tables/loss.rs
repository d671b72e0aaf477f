// SPDX-License-Identifier: Apache-2.0
//! What was lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Events that a probe, ring or map could not keep. Written also when the count is 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Loss {
    /// The probe, ring or map.
    pub what: String,
    /// Events lost.
    pub count: u64,
    /// Events kept.
    pub kept: u64,
}
