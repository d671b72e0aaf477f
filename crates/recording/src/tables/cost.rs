// SPDX-License-Identifier: Apache-2.0
//! What the capture itself cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One part of the capture's own cost, in one slice: what it cost in all is the sum of its rows, of memory the largest. A slice in
/// which it cost nothing has no row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cost {
    /// End of the slice, ns after the capture's start; 0 = all of the capture, or what came after it (`verdict`).
    pub t_ns: u64,
    /// A program, a part of ours or a memory: `bpf:sched_switch`, `user` (until the recording was whole), `verdict` (what was
    /// made of it then), `rss`, `maps`.
    pub what: String,
    /// How often it ran; 0 where it does not apply.
    pub runs: u64,
    /// CPU time, ns; 0 where it does not apply. That of a program is its runs by the price of those that were timed so far: where
    /// that price falls, later rows are lower until the sum is right.
    pub cpu_ns: u64,
    /// Memory, bytes, where there is more of it than before; else 0.
    pub bytes: u64,
}
