// SPDX-License-Identifier: Apache-2.0
//! When everything was told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A burst of full detail: within it each wait of a followed thread has a row in `wakeup`, and each exchange that ends one in
/// `request`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Burst {
    /// Its end, ns after the capture's start.
    pub t_ns: u64,
    /// Its length.
    pub length_ns: u64,
}
