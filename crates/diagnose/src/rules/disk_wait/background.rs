// SPDX-License-Identifier: Apache-2.0
//! Threads that wait for a disk on their own account: checkpointers, compactors, log rotation. Nobody waits for them.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::case::Case;
use crate::facts::aside::Aside;
use crate::facts::calls::Calls;
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::{ThreadLedger, Threads};
use crate::syscall::Family;
use crate::walk::chains::Chain;
use crate::walk::kind_of_thread;
use crate::wording::seconds;

/// Threads that wait for a disk and take no part in requests, those that wait longest first.
pub struct Background {
    /// Process, name and time on disks, ns.
    threads: Vec<(u32, String, f64)>,
    /// Process and name of others that wait for a disk: by these alone, a wait is of either.
    others: HashSet<(u32, String)>,
}

impl Background {
    /// Sorts out those of the ledger's threads that do not take part.
    pub fn of(ledger: &Threads, takes_part: impl Fn(&ThreadLedger) -> bool) -> Self {
        let on_disk = ledger.threads.iter().filter(|t| t.lines.blocked(Blocked::Disk) > 0.0);
        let (others, apart): (Vec<_>, Vec<_>) = on_disk.partition(|t| takes_part(t));
        let of_disk = |t: &&ThreadLedger| (t.pid, t.comm.clone(), t.lines.blocked(Blocked::Disk));
        let mut threads: Vec<_> = apart.iter().map(of_disk).collect();
        threads.sort_by(|a, b| b.2.total_cmp(&a.2));
        Self { threads, others: others.iter().map(|t| (t.pid, kind_of_thread(&t.comm))).collect() }
    }

    /// Their time, ns.
    pub fn ns(&self) -> f64 {
        self.threads.iter().map(|(.., ns)| ns).fold(0.0, |sum, ns| sum + ns)
    }

    /// What to say of them beside the others; empty = there are none.
    pub fn words(&self) -> String {
        match self.threads.first() {
            None => String::new(),
            Some((_, comm, _)) => format!("; background: {comm}, {}", seconds(self.ns() / 1e9)),
        }
    }

    /// Whether a chain begins with one of them, as far as its name tells.
    pub fn has(&self, chain: &Chain) -> bool {
        let who = &chain.links[0].who;
        let is_of_others = self.others.contains(&(who.pid, who.comm.clone()));
        !is_of_others && self.threads.iter().any(|(pid, comm, _)| *pid == who.pid && kind_of_thread(comm) == who.comm)
    }
}

/// Which threads take part in requests, as far as is known: work may be given to one that does not, as a file to be synced once a
/// second, but nobody waits until that is done.
pub struct Parts {
    aside: Arc<Aside>,
    /// Threads in calls that take something from others or give it to them; none = no calls were recorded. That one waits until
    /// something comes says nothing: those that others wake do, too.
    talking: Option<BTreeSet<(u32, u32)>>,
}

impl Parts {
    /// By the waits of all; `None` = nothing is known of them.
    pub fn of(case: &Case) -> Option<Self> {
        let talks = |family: Family| matches!(family, Family::Receive | Family::Accept | Family::Send);
        let talking = case.fact::<Calls>().ok().map(|calls| calls.threads_in(case, talks));
        Some(Self { aside: case.fact::<Aside>().ok()?, talking })
    }

    /// Whether a thread does.
    pub fn has(&self, thread: &ThreadLedger) -> bool {
        let talks = self.talking.as_ref().is_none_or(|talking| talking.contains(&(thread.pid, thread.tid)));
        // Many short-lived ones together have no number.
        thread.tid == 0 || talks || !self.aside.has(thread.tid)
    }
}
