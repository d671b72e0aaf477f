// SPDX-License-Identifier: Apache-2.0
//! The inventory: what was set how, so that two recordings can be told apart by more than their numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that could be different on another day or another machine, as text. A thing without
/// a row was not there or could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Setting {
    /// `host`, `sysctl` (as the target's network namespace has them), `process` or `file` (programs
    /// and libraries that the target has mapped as code).
    pub area: String,
    /// What it belongs to: a command name, the name of a file; empty = the host.
    pub entity: String,
    /// Name, `net.core.somaxconn`, `build_id`, `boot_time`, `limit open files`.
    pub name: String,
    /// Value as read.
    pub value: String,
}
