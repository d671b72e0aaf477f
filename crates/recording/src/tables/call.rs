// SPDX-License-Identifier: Apache-2.0
//! Counted system calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Calls of one thread with like arguments and like results, within one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Call {
    /// Id of the window in table `call_window`.
    pub window: u32,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// System call number.
    pub syscall: i32,
    /// First argument where it is a file descriptor, else -1.
    pub fd: i32,
    /// What `argument` is: `timeout` (ns), `size` (bytes), `flags`, or `none`.
    pub argument_kind: String,
    /// Lower bound of the argument's power-of-two bucket; -1 = endless (timeouts).
    pub argument: i64,
    /// Result: -errno exact, 0, or the lower bound of the power-of-two bucket.
    pub result: i64,
    /// Number of calls.
    pub count: u64,
}
