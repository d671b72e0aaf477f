// SPDX-License-Identifier: Apache-2.0
//! What is said for a verdict: a code for programs and a sentence for who reads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a verdict is not `valid`, or what is to be known of one that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Short and stable.
    pub code: String,
    /// In words.
    pub sentence: String,
}
