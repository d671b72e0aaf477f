// SPDX-License-Identifier: Apache-2.0
//! Where in its program a thread waited, or woke another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A thread of the target at the moment at which it was about to wait, with its user stack: taken before a wait in the same
/// system call as one of table `wakeup` just before. Or a thread outside the target that was about to wake one of table
/// `wakeup`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WaitStack {
    /// When, ns after the capture's start.
    pub t_ns: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Command name.
    pub comm: String,
    /// It was about to wake somebody.
    pub wakes: bool,
    /// System call number.
    pub syscall: i32,
    /// The call's first four arguments.
    pub args: Vec<u64>,
    /// The call's first argument points into the frames of the calls that led to it (within 1 KiB above the stack pointer): what a
    /// thread has there, it waits for alone.
    pub own_frame: bool,
    /// Id in table `stack` of the user stack; 0 = none.
    pub stack: u32,
}
