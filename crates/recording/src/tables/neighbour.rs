//! Who else ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A process outside the target that used CPU in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Neighbour {
    /// Process id; 0 = the idle task is never listed.
    pub pid: u32,
    /// Command name.
    pub comm: String,
    /// Cgroup path, to tell a neighbour in the same cgroup; empty = unknown.
    pub cgroup: String,
    /// CPU number.
    pub cpu: u32,
    /// Timer samples that found it on this CPU.
    pub samples: u64,
    /// Timer samples that found it on this CPU while a thread of the target was runnable there.
    pub samples_in_the_way: u64,
}
