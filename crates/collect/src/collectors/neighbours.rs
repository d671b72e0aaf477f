// SPDX-License-Identifier: Apache-2.0
//! Who else ran, slice by slice: who was sampled on the target's CPUs, and who ran until the target got its CPU.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::mem::take;
use std::path::PathBuf;

use anyhow::Result;
use recording::Tables;
use recording::tables::Neighbour;

use crate::collector::{Collector, Kind, Shared, SliceEnd};
use crate::courtesy;
use crate::plan::Plan;
use crate::proc::text;
use crate::target::cgroup_of;

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "neighbour",
    facility: None,
    tables: |_| (),
    start: |start, _| Ok(Box::new(Neighbours::new(start.plan))),
};

/// Remembers who those of the last slice are: no longer, because a number comes to mean another process.
struct Neighbours {
    root: PathBuf,
    /// Empty = all.
    allowed_cpus: Vec<u32>,
    known: HashMap<u32, Who>,
}

struct Who {
    comm: String,
    cgroup: String,
}

impl Neighbours {
    fn new(plan: &Plan) -> Self {
        let allowed_cpus = plan.target.limits.allowed_cpus.clone();
        Self { root: plan.root.clone(), allowed_cpus, known: HashMap::new() }
    }

    fn rows(&mut self, end: &SliceEnd, shared: &mut Shared<'_>) -> Result<Vec<Neighbour>> {
        let mut rows: BTreeMap<u32, Neighbour> = BTreeMap::new();
        let sampled = take(&mut shared.bystanders);
        let allowed = |cpu: &u32| self.allowed_cpus.is_empty() || self.allowed_cpus.contains(cpu);
        for (pid, _, comm, samples) in sampled.into_iter().filter(|(_, cpu, ..)| allowed(cpu)) {
            let row = rows.entry(pid).or_insert_with(|| Neighbour { comm, ..Neighbour::default() });
            row.samples += samples;
        }
        for (pid, by_length_ns) in shared.ledger.delayers()? {
            let row = rows.entry(pid).or_default();
            row.delayed_ns = by_length_ns.iter().sum();
            row.by_length_ns = by_length_ns;
        }
        let own = shared.known.within(end);
        for (pid, row) in &mut rows {
            (row.t_ns, row.pid) = (end.t_ns, *pid);
            row.own = own.contains(pid);
            row.observer = *pid == std::process::id();
            self.name(row);
        }
        self.known.retain(|pid, _| rows.contains_key(pid));
        Ok(rows.into_values().collect())
    }

    /// A sample names the thread that ran; the process has the name that people know.
    fn name(&mut self, row: &mut Neighbour) {
        let who = match self.known.entry(row.pid) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let comm = text(&self.root.join(format!("proc/{}/comm", row.pid))).unwrap_or_default();
                new.insert(Who { comm: comm.trim_end().into(), cgroup: cgroup_of(&self.root, row.pid) })
            }
        };
        if !who.comm.is_empty() {
            row.comm.clone_from(&who.comm);
        }
        row.cgroup.clone_from(&who.cgroup);
    }
}

impl Collector for Neighbours {
    fn slice(&mut self, shared: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        // It asks for locks of the cgroups.
        let rows = courtesy::urgently(|| self.rows(end, shared))?;
        tables.extend(rows);
        Ok(())
    }
}
