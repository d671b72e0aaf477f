// SPDX-License-Identifier: Apache-2.0
//! Threads that wait for a disk on their own account: checkpointers, compactors, log rotation. Nobody waits for them.

use std::collections::HashSet;
use std::sync::Arc;

use recording::tables::Wakeup;

use crate::case::Case;
use crate::facts::woken_by_clients::WokenByClients;
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::{ThreadLedger, Threads};
use crate::syscall::{Family, family};
use crate::walk::chains::Chain;
use crate::walk::{Walk, kind_of_thread};
use crate::wording::seconds;

/// Threads that wait for a disk and take no part in requests, those that wait longest first.
pub struct Background {
    /// Process, name and time on disks, ns.
    threads: Vec<(u32, String, f64)>,
}

impl Background {
    /// Sorts out those of the ledger's threads that do not take part.
    pub fn of(ledger: &Threads, takes_part: impl Fn(&ThreadLedger) -> bool) -> Self {
        let on_disk = ledger.threads.iter().filter(|t| t.lines.blocked(Blocked::Disk) > 0.0);
        let apart = on_disk.filter(|t| !takes_part(t));
        let mut threads: Vec<_> = apart.map(|t| (t.pid, t.comm.clone(), t.lines.blocked(Blocked::Disk))).collect();
        threads.sort_by(|a, b| b.2.total_cmp(&a.2));
        Self { threads }
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

    /// Whether a chain begins with one of them.
    pub fn has(&self, chain: &Chain) -> bool {
        let who = &chain.links[0].who;
        self.threads.iter().any(|(pid, comm, _)| *pid == who.pid && kind_of_thread(comm) == who.comm)
    }
}

/// Which threads take part in requests, as far as is known. That one does not has to be shown: others serve clients, while its own
/// waits are ended by its timer, by a disk or the kernel, never by a client nor by another thread of the target, and it ends nobody's.
pub struct Parts {
    /// Threads of which another one ended a wait, and those others.
    asked: HashSet<u32>,
    /// Those of which a client ended a wait.
    serving: Arc<WokenByClients>,
    /// Those of which a timer did.
    by_timer: HashSet<u32>,
}

impl Parts {
    /// By the waits of all; `None` = nothing is known of them.
    pub fn of(case: &Case) -> Option<Self> {
        let (walk, serving) = (case.fact::<Walk>().ok()?, case.fact::<WokenByClients>().ok()?);
        let mut parts = Self { asked: HashSet::new(), serving, by_timer: HashSet::new() };
        for row in case.recording.rows::<Wakeup>().iter().filter(|row| walk.target.contains(&row.pid)) {
            if row.context == "thread" && row.waker_tid != row.tid && walk.target.contains(&row.waker_pid) {
                parts.asked.extend([row.tid, row.waker_tid]);
            }
            if row.context == "interrupt" && waits_for_time(case, row) {
                parts.by_timer.insert(row.tid);
            }
        }
        Some(parts)
    }

    /// Whether a thread does.
    pub fn has(&self, thread: &ThreadLedger) -> bool {
        let serves = self.serving.0.contains(&thread.tid);
        let others_serve = self.serving.0.len() > usize::from(serves);
        let is_alone = self.by_timer.contains(&thread.tid) && !self.asked.contains(&thread.tid);
        // Many short-lived ones together have no number.
        thread.tid == 0 || serves || !others_serve || !is_alone
    }
}

/// Whether a wait is of a kind that a timer ends.
fn waits_for_time(case: &Case, row: &Wakeup) -> bool {
    matches!(family(&case.syscall(row.syscall)), Family::Sleep | Family::Poll | Family::Futex)
}
