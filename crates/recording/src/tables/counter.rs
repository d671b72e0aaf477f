// SPDX-License-Identifier: Apache-2.0
//! Counters of the machine, its cgroups and its network namespaces, as read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One reading. A row is written only if the value differs from the reading before it;
/// the first reading and the last are always there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Counter {
    /// Time, ns after the capture's start.
    pub t_ns: u64,
    /// Where it was read, `proc/stat`, `cgroup/cpu.stat`, `proc/net/snmp`.
    pub source: String,
    /// What it belongs to: `cpu0`, `eth0`, `sda`, a cgroup path, a pid; empty = the whole host.
    pub entity: String,
    /// Name with its unit where it has one, `user_ns`, `nr_throttled`, `ListenOverflows`.
    pub name: String,
    /// Value as read; a counter unless the source says it is a gauge.
    pub value: f64,
}
