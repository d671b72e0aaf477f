// SPDX-License-Identifier: Apache-2.0
//! What could not be seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that this kernel or these privileges did not let us see.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gap {
    /// The facility or the table that is missing, `throttled`, `sample`.
    pub what: String,
    /// Why, as a sentence with the remedy where there is one.
    pub why: String,
}
