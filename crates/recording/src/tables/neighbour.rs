// SPDX-License-Identifier: Apache-2.0
//! Who else ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A process that used CPU in a slice, or that was in the target's way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Neighbour {
    /// End of the slice, ns after the capture's start.
    pub t_ns: u64,
    /// Process id; 0 = those that ran before the one that left the CPU to the target, together.
    pub pid: u32,
    /// Command name; empty = it ended before it could be asked.
    pub comm: String,
    /// Cgroup path, to tell a neighbour in the same cgroup; empty = unknown.
    pub cgroup: String,
    /// It belongs to the target itself.
    pub own: bool,
    /// It is the recorder itself.
    pub observer: bool,
    /// Timer samples that found it on a CPU that the target may use (only for processes outside the target).
    pub samples: u64,
    /// Run-queue time of the target in waits of 50 us and more, ns, in which this process ran on the CPU that it then left to the target.
    pub delayed_ns: u64,
    /// The same by the length of the whole wait, ns: waits of up to 2^17 ns, up to 2^18 ns and so on, the last class
    /// without an end. Waits under 50 us are in none of them. Empty = not recorded.
    pub by_length_ns: Vec<u64>,
}
