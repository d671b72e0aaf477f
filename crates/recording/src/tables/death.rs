// SPDX-License-Identifier: Apache-2.0
//! Processes of the target that a signal ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Processes of one name that ended in a slice by the same signal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Death {
    /// End of the slice, ns after the capture's start.
    pub t_ns: u64,
    /// Process id of one of them.
    pub pid: u32,
    /// Their parent's process id, or that of one of them.
    pub ppid: u32,
    /// Command name.
    pub comm: String,
    /// Number of the signal, as the kernel counts them: 11 = SIGSEGV.
    pub signal: u32,
    /// How many.
    pub count: u64,
}
