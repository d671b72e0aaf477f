// SPDX-License-Identifier: Apache-2.0
//! Who started a thread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A thread that was started in a burst of full detail (table `burst`), of the target or of a process that wakes it: a service may start
/// one for each connection or each request, and what such a one did not wait for, whoever starts it was at before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Birth {
    /// When, ns after the capture's start.
    pub t_ns: u64,
    /// Process id of the new thread; where a process was started, this is its first one.
    pub pid: u32,
    /// Its thread id.
    pub tid: u32,
    /// Its command name, which is still that of whoever started it.
    pub comm: String,
    /// Process id of the thread that started it.
    pub parent_pid: u32,
    /// Thread id of that one.
    pub parent_tid: u32,
}
