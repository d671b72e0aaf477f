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
    /// `refused`: the kernel or the privileges did not allow it. `partial`: some of it was not looked at.
    pub reason: String,
    /// How much of it was not seen, 0 to 1; 0 = all of it, or nobody knows.
    pub unseen_share: f64,
}

impl Gap {
    /// Whether all of it is missing, which is known as soon as it is asked for; how much was not looked at, only the end tells.
    pub fn is_refused(&self) -> bool {
        self.reason == "refused"
    }

    /// What the kernel or the privileges did not allow.
    pub fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), reason: "refused".into(), unseen_share: 0.0 }
    }

    /// Of what only a part was looked at; `unseen_share` = 0 if nobody knows how much was not.
    pub fn partial(what: impl Into<String>, unseen_share: f64, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), reason: "partial".into(), unseen_share }
    }
}
