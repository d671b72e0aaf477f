// SPDX-License-Identifier: Apache-2.0
//! When exchanges were followed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A slice in which exchanges on the target's connections were followed: each, or of a service with very many one to three of every so
/// many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExchangeWindow {
    /// Its end, ns after the capture's start.
    pub t_ns: u64,
    /// Its length.
    pub length_ns: u64,
}
