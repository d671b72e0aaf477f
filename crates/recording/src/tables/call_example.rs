// SPDX-License-Identifier: Apache-2.0
//! A few system calls as they were made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One call with its arguments and result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallExample {
    /// Time, ns after the capture's start.
    pub t_ns: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// System call number.
    pub syscall: i32,
    /// First to sixth argument, as in the registers.
    pub args: Vec<u64>,
    /// Result.
    pub result: i64,
}
