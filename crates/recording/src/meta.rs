// SPDX-License-Identifier: Apache-2.0
//! `meta.json`: what was recorded, where, when, and on which kernel. Written first and again when
//! the recording is sealed, so that a capture that was killed can still be read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One recording's description.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Layout version, see [`crate::SCHEMA`].
    pub schema: u32,
    /// Name and version of the program that wrote it, `wakewalk 0.1.0`.
    pub tool: String,
    /// `target` (one service), `host` (the five-second look at everything) or `load` (what `load --save` keeps: no evidence of
    /// a service, but what came of a load).
    pub kind: String,
    /// Wall-clock start, RFC 3339, UTC.
    pub started: String,
    /// CLOCK_MONOTONIC at the start, ns: the zero of every `t_ns` column.
    pub start_ns: u64,
    /// Length of the window that was really observed, ns; 0 while the capture runs.
    pub length_ns: u64,
    /// False until the recording was sealed: the capture was cut short without a goodbye.
    pub sealed: bool,
    /// Why the window ended: `time`, `interrupted`, `target exited`, or `budget`: it had as many rows as are judged.
    pub ended: String,
    /// The response time that its owner promised when it was captured (`--slo`), ns; 0 = none.
    pub slo_ns: u64,
    /// The machine.
    pub host: Host,
    /// What was observed.
    pub target: Target,
    /// Sealed tables as they were written, by file name, so that damage is found out and not diagnosed.
    /// Empty while the capture runs, and in recordings of early versions.
    pub files: BTreeMap<String, Sum>,
}

/// Size and checksum of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sum {
    /// Size in bytes.
    pub bytes: u64,
    /// CRC-32 of the content, as gzip has it.
    pub crc32: u32,
}

/// The machine and kernel of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Kernel release, as uname prints it.
    pub kernel: String,
    /// Machine architecture, as uname prints it.
    pub arch: String,
    /// Online CPUs.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Page size in bytes.
    pub page_bytes: u64,
    /// Length of the kernel's timer tick in ns, 1e9 / CONFIG_HZ.
    pub tick_ns: u64,
    /// `none`, or the hypervisor's name where CPUID tells.
    pub virtualization: String,
    /// Boot id, to tell two boots of one host apart.
    pub boot_id: String,
}

/// The service under observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Target {
    /// How it was named on the command line, `--pid 42`.
    pub named: String,
    /// Processes at the start of the capture.
    pub pids: Vec<u32>,
    /// Command name of the first process.
    pub comm: String,
    /// Listening sockets, `tcp 0.0.0.0:8080`.
    pub listen: Vec<String>,
    /// TCP ports that anybody listens on in its network namespaces: a forked backend serves connections that its parent
    /// accepted.
    pub ports: Vec<u32>,
    /// CPUs that the target may use (affinity and cpuset), ascending.
    pub allowed_cpus: Vec<u32>,
    /// CPU quota in CPUs (quota / period), the tightest on the path to the root; none = no limit.
    pub quota_cpus: Option<f64>,
    /// The cgroup that sets the quota, or the target's own where none does.
    pub cgroup: String,
    /// Hertz of the on-CPU sampler for each CPU; 0 = it did not run.
    pub sample_hz: u32,
    /// Size of a stack snapshot in bytes.
    pub stack_bytes: u32,
}
