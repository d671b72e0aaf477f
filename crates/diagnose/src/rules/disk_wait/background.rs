// SPDX-License-Identifier: Apache-2.0
//! Threads that wait for a disk on their own account: checkpointers, compactors, log rotation. Nobody waits for them.

use recording::tables::Wakeup;

use crate::case::Case;
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::{ThreadLedger, Threads};
use crate::syscall::{Family, family};
use crate::walk::chains::Chain;
use crate::walk::clients::Clients;
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

/// Whether a thread takes part in requests, as far as is known. That it does not has to be shown: others serve clients, while
/// its own waits are ended by its timer, by a disk or the kernel, never by a client nor by another thread of the target, and
/// it ends nobody's.
pub fn in_requests(case: &Case, thread: &ThreadLedger) -> bool {
    let (Ok(walk), Ok(clients)) = (case.fact::<Walk>(), case.fact::<Clients>()) else { return true };
    if thread.tid == 0 {
        return true; // many short-lived ones together
    }
    let of_target = |row: &&Wakeup| walk.target.contains(&row.pid);
    let rows: Vec<&Wakeup> = case.recording.rows::<Wakeup>().iter().filter(of_target).collect();
    let (own, others): (Vec<&Wakeup>, Vec<&Wakeup>) = rows.into_iter().partition(|row| row.tid == thread.tid);
    let by_target = |row: &&Wakeup| row.context == "thread" && walk.target.contains(&row.waker_pid);
    let asked = own.iter().any(|row| clients.ended(case, row) || by_target(row) && row.waker_tid != thread.tid);
    let waited_for = others.iter().any(|row| by_target(row) && row.waker_tid == thread.tid);
    let serves = others.iter().any(|row| clients.ended(case, row));
    let by_timer = own.iter().any(|row| row.context == "interrupt" && waits_for_time(case, row));
    asked || waited_for || !serves || !by_timer
}

/// Whether a wait is of a kind that a timer ends.
fn waits_for_time(case: &Case, row: &Wakeup) -> bool {
    matches!(family(&case.syscall(row.syscall)), Family::Sleep | Family::Poll | Family::Futex)
}
