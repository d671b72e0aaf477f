// SPDX-License-Identifier: Apache-2.0
//! The machine, the service and the time that an answer is about.

use recording::Recording;
use recording::tables::{self, Process};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine of the recording.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Kernel release.
    pub kernel: String,
    /// Online CPUs.
    pub cpus: u32,
    /// Hypervisor, `none` if there is none.
    pub virtualization: String,
}

impl Host {
    pub(crate) fn of(recording: &Recording) -> Self {
        let host = &recording.meta.host;
        Self {
            name: host.name.clone(),
            kernel: host.kernel.clone(),
            cpus: host.cpus,
            virtualization: host.virtualization.clone(),
        }
    }
}

/// The service.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// How it was named.
    pub named: String,
    /// Process ids at the start.
    pub pids: Vec<u32>,
    /// Command name.
    pub comm: String,
    /// Listening sockets: those at the start, then those that it opened meanwhile.
    pub listen: Vec<String>,
}

impl Target {
    pub(crate) fn of(recording: &Recording) -> Self {
        let target = &recording.meta.target;
        let mut listen = target.listen.clone();
        let opened = recording.rows::<Process>().iter().flat_map(|process| &process.listen);
        opened.for_each(|socket| {
            if !listen.contains(socket) {
                listen.push(socket.clone());
            }
        });
        Self { named: target.named.clone(), pids: target.pids.clone(), comm: target.comm.clone(), listen }
    }
}

/// When the service was observed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// RFC 3339, UTC.
    pub start: String,
    /// Length in seconds.
    pub seconds: f64,
    /// Why it ended, `time`, `interrupted`, `target exited`, `budget` (it had as many rows as can be judged).
    pub ended: String,
}

impl Window {
    pub(crate) fn of(recording: &Recording) -> Self {
        let meta = &recording.meta;
        Self { start: meta.started.clone(), seconds: length_ns(recording) / 1e9, ended: meta.ended.clone() }
    }
}

/// Length of the capture, ns. A capture that was killed has no length in its description: then the last slice of the
/// thread ledger ends it.
pub(crate) fn length_ns(recording: &Recording) -> f64 {
    if recording.meta.length_ns > 0 {
        return recording.meta.length_ns as f64;
    }
    recording.rows::<tables::Thread>().iter().map(|t| t.t_ns).max().unwrap_or(0) as f64
}
