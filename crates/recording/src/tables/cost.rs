// SPDX-License-Identifier: Apache-2.0
//! What the capture itself cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One part of the capture's own cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cost {
    /// A program, a part of ours or a memory: `bpf:sched_switch`, `user` (until the recording was whole), `verdict` (what was
    /// made of it then), `rss`, `maps`.
    pub what: String,
    /// How often it ran; 0 where it does not apply.
    pub runs: u64,
    /// CPU time, ns; 0 where it does not apply.
    pub cpu_ns: u64,
    /// Memory, bytes; 0 where it does not apply.
    pub bytes: u64,
}
