// SPDX-License-Identifier: Apache-2.0
//! The samplers, as a collector.

use std::collections::HashSet;
use std::mem::take;

use anyhow::Result;
use recording::Tables;
use recording::tables::{Counter, Gap, Process};

use crate::collector::{Collector, Kind, Shared, SliceEnd, Start};
use crate::probes::ledger::ThreadRow;
use crate::proc::Proc;
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
    network: Network,
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
        let network = Network::of(&scope);
        Self { samplers: Samplers::new(scope), followed, network, rows: Vec::new(), every: 1, slices: 0 }
    }
}

/// The network namespace that is read: that of the first process when the capture began.
struct Network {
    proc: Proc,
    read: Option<String>,
    /// Processes of the target that were seen in it, and in others.
    seen: [HashSet<u32>; 2],
}

impl Network {
    fn of(scope: &Scope) -> Self {
        let mut network = Self {
            proc: scope.proc.clone(),
            read: scope.proc.namespace(&scope.network(), "net"),
            seen: Default::default(),
        };
        network.come(scope.pids.iter().copied());
        network
    }

    fn come(&mut self, pids: impl Iterator<Item = u32>) {
        for pid in pids {
            // One that has ended tells nothing.
            let Some(network) = self.proc.namespace(&pid.to_string(), "net") else { continue };
            self.seen[usize::from(Some(network) != self.read)].insert(pid);
        }
    }

    fn gap(&self) -> Option<Gap> {
        let [here, others] = [0, 1].map(|at| self.seen[at].len());
        let all = (here + others) as f64;
        (others > 0 && self.read.is_some()).then(|| {
            let why = format!(
                "{others} of {all} processes of the target are in another network namespace than the first one was: what their network \
                 drops, sends again and keeps in queues is unknown; name one of them (--pid) to see it"
            );
            Gap::partial("network", others as f64 / all, why)
        })
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
        self.network.come(processes.iter().map(|process| process.pid));
        self.samplers.listen(processes.iter().flat_map(|process| &process.listen));
    }

    fn gaps(&mut self, _: &Shared<'_>) -> Result<Vec<Gap>> {
        Ok(self.samplers.gaps().into_iter().chain(self.network.gap()).collect())
    }

    /// Reads every second slice only: the times of its rows show it.
    fn shed(&mut self) -> bool {
        std::mem::replace(&mut self.every, MOST_EVERY) < MOST_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;
    use crate::target::Cgroups;

    fn living(pids: &[u32]) -> Vec<ThreadRow> {
        pids.iter().map(|pid| ThreadRow { tgid: *pid, tid: *pid, ..ThreadRow::default() }).collect()
    }

    #[test]
    fn processes_in_another_network_are_told() {
        let root = FakeRoot::new();
        root.process(3, 1, "web").process(4, 1, "web").process(5, 1, "web");
        root.link("proc/5/ns/net", "net:[2]");
        let scope = Scope {
            proc: Proc::new(root.path()),
            pids: vec![3, 4],
            listen: Vec::new(),
            cgroups: Cgroups::default(),
            own_network: false,
        };
        let mut seen = Network::of(&scope);
        assert!(seen.gap().is_none());
        seen.come([5, 6].into_iter());
        assert!(seen.gap().unwrap().why.starts_with("1 of 3 processes"), "{:?}", seen.gap());
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
