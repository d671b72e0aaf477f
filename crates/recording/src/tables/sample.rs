// SPDX-License-Identifier: Apache-2.0
//! The on-CPU profile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One timer sample of a thread of the target that was on a CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sample {
    /// Time, ns after the capture's start.
    pub t_ns: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Thread's command name.
    pub comm: String,
    /// CPU number.
    pub cpu: u32,
    /// The CPU was in kernel mode.
    pub kernel: bool,
    /// System call number if in one, else -1.
    pub syscall: i32,
    /// First to sixth argument of the system call, as in the registers (empty in user mode).
    pub args: Vec<u64>,
    /// Result of the call that had just ended, where the registers still show it.
    pub result: Option<i64>,
    /// Id in table `stack`, kernel frames above user frames.
    pub stack: u32,
    /// How many samples this row stands for (weights of a lowered rate).
    pub weight: u32,
}
