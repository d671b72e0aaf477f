// SPDX-License-Identifier: Apache-2.0
//! Whom the samplers look at.

use std::path::{Path, PathBuf};

use crate::proc::Proc;
use crate::target::{Cgroups, Resolved};

/// A target, or the host alone.
#[derive(Clone, Debug)]
pub struct Scope {
    /// `/proc` to read.
    pub proc: Proc,
    /// Processes of the target, the main ones first; none for the host.
    pub pids: Vec<u32>,
    /// Listening sockets to follow, `tcp 0.0.0.0:8080`; none for the host, which means all.
    pub listen: Vec<String>,
    /// Cgroups to follow.
    pub cgroups: Cgroups,
    /// Whether the network namespace in question is our own.
    pub own_network: bool,
}

impl Scope {
    /// For a target.
    pub fn of(root: &Path, target: &Resolved) -> Self {
        let proc = Proc::new(root);
        let theirs = target.pids.first().and_then(|pid| proc.namespace(&pid.to_string(), "net"));
        Self {
            own_network: theirs == proc.namespace("self", "net"),
            proc,
            pids: target.pids.clone(),
            listen: target.listen.clone(),
            cgroups: target.cgroups.clone(),
        }
    }

    /// For the host: our own network namespace, and these cgroups.
    pub fn host(root: &Path, cgroups: Cgroups) -> Self {
        Self { proc: Proc::new(root), pids: Vec::new(), listen: Vec::new(), cgroups, own_network: true }
    }

    /// Whether the root is that of the running system.
    pub fn is_this_machine(&self) -> bool {
        self.proc.root() == Path::new("/")
    }

    /// What it means that there is no cgroup to follow: a gap for a target, nothing for the host, which
    /// is limited by none.
    pub fn no_cgroup(&self) -> Result<(), String> {
        if self.pids.is_empty() { Ok(()) } else { Err("no cgroup of the target is visible".to_string()) }
    }

    /// A process in the network namespace in question: the first that is still there, or `self`.
    pub fn network(&self) -> String {
        let alive = self.pids.iter().find(|pid| self.proc.of(**pid, "net").exists());
        alive.or(self.pids.first()).map_or_else(|| "self".to_string(), ToString::to_string)
    }

    /// A file of the network namespace in question.
    pub fn network_file(&self, name: &str) -> PathBuf {
        self.proc.path(format!("{}/net/{name}", self.network()))
    }
}
