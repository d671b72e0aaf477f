// SPDX-License-Identifier: Apache-2.0
//! Who was there.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A process of the target; or, with `pid` 0, all short-lived children of one name together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Process {
    /// Process id in the observer's pid namespace; 0 = short-lived ones of this name together.
    pub pid: u32,
    /// Parent's process id.
    pub ppid: u32,
    /// Process id inside its own pid namespace (containers), else the same as `pid`.
    pub inner_pid: u32,
    /// How many processes this row stands for.
    pub instances: u64,
    /// Start of the process, ns after the capture's start; 0 = before it. Of one that came into the target's cgroup from outside, the
    /// begin of the slice in which it was met.
    pub started_ns: u64,
    /// Command name (16 bytes of the kernel's).
    pub comm: String,
    /// Executable, in the process's own mount namespace.
    pub exe: String,
    /// Command line, arguments joined by blanks.
    pub cmdline: String,
    /// Cgroup path (v2, else the v1 cpu hierarchy).
    pub cgroup: String,
    /// Sockets that it listens on, `tcp 0.0.0.0:8080`, in its own network namespace.
    pub listen: Vec<String>,
}

impl Process {
    pub(super) fn times(_: &Range<u64>) -> Range<u64> {
        0..u64::MAX
    }

    /// Those that had come before its end.
    pub(super) fn part(&self, part: &Range<u64>) -> Option<Self> {
        let started_ns = self.started_ns.saturating_sub(part.start);
        (self.started_ns < part.end).then(|| Self { started_ns, ..self.clone() })
    }
}
