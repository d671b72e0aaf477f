// SPDX-License-Identifier: Apache-2.0
//! Who else ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A process that used CPU in the window, or that was in the target's way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Neighbour {
    /// Process id.
    pub pid: u32,
    /// Command name; empty = it ended before it could be asked.
    pub comm: String,
    /// Cgroup path, to tell a neighbour in the same cgroup; empty = unknown.
    pub cgroup: String,
    /// It belongs to the target itself.
    pub own: bool,
    /// Timer samples that found it on a CPU (only for processes outside the target).
    pub samples: u64,
    /// Run-queue time of the target, ns, at whose end this process left the CPU to it.
    pub delayed_ns: u64,
}
