// SPDX-License-Identifier: Apache-2.0
//! Counters of the machine, its cgroups and its network namespaces, as read.

use std::collections::HashSet;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One reading. A row is written only if the value differs from the reading before it; the first reading and the last are
/// always there, and so are all of one slice in each minute, so that a part of a long recording need not be read from its
/// start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Counter {
    /// Time, ns after the capture's start.
    pub t_ns: u64,
    /// Where it was read, `proc/stat`, `cgroup/cpu`, `proc/net/snmp`.
    pub source: String,
    /// What it belongs to: `cpu0`, `eth0`, `sda`, a cgroup path, a pid, a protocol (`Tcp`); empty = all of what the source is of: the host,
    /// or the target's network namespace.
    pub entity: String,
    /// Name with its unit where it has one, `user_ns`, `nr_throttled`, `ListenOverflows`.
    pub name: String,
    /// Value as read; a counter unless the source says it is a gauge.
    pub value: f64,
}

/// Every reading is told again after as long, ns, whether or not it has changed.
pub const TOLD_AGAIN_NS: u64 = 60_000_000_000;

impl Counter {
    /// With the time in which every reading was told at least once; slices are a little longer than a second.
    pub(super) fn times(part: &Range<u64>) -> Range<u64> {
        part.start.saturating_sub(2 * TOLD_AGAIN_NS)..part.end.saturating_add(1)
    }

    /// A part begins with the last reading before it.
    pub(super) fn part(&self, part: &Range<u64>) -> Option<Self> {
        (self.t_ns <= part.end).then(|| Self { t_ns: self.t_ns.saturating_sub(part.start), ..self.clone() })
    }

    /// Of the readings up to the start the last of each name. Rows are in the order of time.
    pub(super) fn keep_last_of_start(rows: &mut Vec<Self>, start_ns: u64) {
        let mut known = HashSet::new();
        let newest_first = rows.iter().enumerate().rev().filter(|(_, row)| row.t_ns <= start_ns);
        let old: HashSet<usize> = newest_first
            .filter(|(_, row)| !known.insert((&row.source, &row.entity, &row.name)))
            .map(|(at, _)| at)
            .collect();
        let mut at = 0..;
        rows.retain(|_| at.next().is_none_or(|at| !old.contains(&at)));
    }
}
