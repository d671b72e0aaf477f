// SPDX-License-Identifier: Apache-2.0
//! How long system calls took.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time of one thread's calls of one number in one power-of-two bucket, within one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallLatency {
    /// Id of the window in table `call_window`.
    pub window: u32,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// System call number.
    pub syscall: i32,
    /// Lower bound of the bucket, ns.
    pub from_ns: u64,
    /// Number of calls.
    pub count: u64,
}
