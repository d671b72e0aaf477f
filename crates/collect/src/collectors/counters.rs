// SPDX-License-Identifier: Apache-2.0
//! The samplers, as a collector.

use std::collections::HashSet;
use std::mem::take;

use anyhow::Result;
use recording::Tables;
use recording::tables::{Counter, Gap, Process};

use crate::collector::{Collector, Kind, Shared, SliceEnd, Start};
use crate::probes::ledger::ThreadRow;
use crate::samplers::{Samplers, Scope};

/// Of so many slices one is read where reading is to cost less.
const MOST_EVERY: u64 = 2;

/// Each sampler says itself what it needs, and what is unknown without it.
pub const KIND: Kind =
    Kind { gap: "counter", facility: None, tables: |_| (), start: |start, _| Ok(Box::new(Counters::new(start))) };

/// The samplers, and what they have read at the end of this slice.
struct Counters {
    samplers: Samplers,
    followed: Followed,
    rows: Vec<Counter>,
    /// Of so many slices one is read.
    every: u64,
    /// Slices so far.
    slices: u64,
}

impl Counters {
    fn new(start: &Start<'_, '_>) -> Self {
        let scope = Scope::of(&start.plan.root, &start.plan.target);
        let followed = Followed { pids: start.plan.target.pids.clone() };
        Self { samplers: Samplers::new(scope), followed, rows: Vec::new(), every: 1, slices: 0 }
    }
}

/// The target's processes that are read: the named ones first, the others in the order in which they came. One that comes and
/// goes within a second is never read: a service that forks all the time must not be followed into each of its children.
struct Followed {
    pids: Vec<u32>,
}

impl Followed {
    fn come(&mut self, born: &[Process]) {
        self.pids.extend(born.iter().map(|process| process.pid));
    }

    /// Leaves those that are still there.
    fn stay(&mut self, living: &[ThreadRow]) -> &[u32] {
        let living: HashSet<u32> = living.iter().map(|row| row.tgid).collect();
        let mut seen = HashSet::new();
        self.pids.retain(|pid| living.contains(pid) && seen.insert(*pid));
        &self.pids
    }
}

impl Collector for Counters {
    fn begin(&mut self, _: &mut Shared<'_>, tables: &mut Tables) -> Result<()> {
        tables.extend(self.samplers.sample(0));
        Ok(())
    }

    fn read(&mut self, _: &Shared<'_>, end: &SliceEnd) {
        self.samplers.follow(self.followed.stay(&end.living));
        self.slices += 1;
        if !end.last && !self.slices.is_multiple_of(self.every) {
            return;
        }
        self.rows = if end.last { self.samplers.last(end.t_ns) } else { self.samplers.sample(end.t_ns) };
    }

    fn slice(&mut self, _: &mut Shared<'_>, _: &SliceEnd, tables: &mut Tables) -> Result<()> {
        tables.extend(take(&mut self.rows));
        Ok(())
    }

    fn come(&mut self, processes: &[Process]) {
        self.followed.come(processes);
        self.samplers.listen(processes.iter().flat_map(|process| &process.listen));
    }

    fn gaps(&mut self, _: &Shared<'_>) -> Result<Vec<Gap>> {
        Ok(self.samplers.gaps())
    }

    /// Reads every second slice only: the times of its rows show it.
    fn shed(&mut self) -> bool {
        std::mem::replace(&mut self.every, MOST_EVERY) < MOST_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn living(pids: &[u32]) -> Vec<ThreadRow> {
        pids.iter().map(|pid| ThreadRow { tgid: *pid, tid: *pid, ..ThreadRow::default() }).collect()
    }

    #[test]
    fn a_worker_that_replaced_another_is_read_instead_of_it() {
        let mut followed = Followed { pids: vec![7, 3, 9] };
        assert_eq!(followed.stay(&living(&[3, 7, 9, 20])), [7, 3, 9], "one that was just born may be gone at once");
        followed.come(&[Process { pid: 20, ..Process::default() }]);
        assert_eq!(followed.stay(&living(&[7, 9, 20])), [7, 9, 20]);
        followed.come(&[Process { pid: 9, ..Process::default() }]);
        assert_eq!(followed.stay(&living(&[7, 9, 20])), [7, 9, 20], "a number that came again is read once");
    }
}
