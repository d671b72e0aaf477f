// SPDX-License-Identifier: Apache-2.0
//! Threads that wait for a disk on their own account: checkpointers, compactors, log rotation. Nobody waits for them.

use std::collections::HashSet;
use std::sync::Arc;

use recording::tables::{Request, Wakeup};

use crate::case::Case;
use crate::facts::serving::Serving;
use crate::facts::woken_by_clients::WokenByClients;
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::{ThreadLedger, Threads};
use crate::walk::chains::Chain;
use crate::walk::{Walk, kind_of_thread};
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

/// Requests that were followed, from which on a thread that had none of them takes none.
const ENOUGH: usize = 20;

/// Which threads take part in requests, as far as is known. That one does not has to be shown: others serve clients, no client ever
/// ended a wait of its own, it ends nobody's, and it neither reads nor writes what requests say. Work may be given to it, as a file
/// to be synced once a second, but nobody waits until that is done.
pub struct Parts {
    /// Threads that ended a wait of another one, or that had a request.
    awaited: HashSet<u32>,
    /// Those of which another one ended a wait.
    woken: HashSet<u32>,
    /// Those that waited at all, as far as was told.
    told: HashSet<u32>,
    /// Those of which a client ended a wait.
    serving: Arc<WokenByClients>,
    traffic: Option<Arc<Serving>>,
    /// Enough requests were followed.
    followed: bool,
}

impl Parts {
    /// By the waits of all; `None` = nothing is known of them.
    pub fn of(case: &Case) -> Option<Self> {
        let (walk, serving) = (case.fact::<Walk>().ok()?, case.fact::<WokenByClients>().ok()?);
        let requests = case.recording.rows::<Request>().iter().filter(|row| row.is_accepted());
        let awaited: HashSet<u32> = requests.clone().flat_map(|row| [row.began_tid, row.ended_tid]).collect();
        let (woken, told, traffic) = (HashSet::new(), HashSet::new(), case.fact::<Serving>().ok());
        let mut parts = Self {
            awaited,
            woken,
            told,
            serving,
            traffic,
            followed: requests.filter(|row| row.is_of_client()).count() >= ENOUGH,
        };
        for row in case.recording.rows::<Wakeup>().iter().filter(|row| walk.target.contains(&row.pid)) {
            parts.told.insert(row.tid);
            if row.context == "thread" && row.waker_tid != row.tid && walk.target.contains(&row.waker_pid) {
                parts.awaited.insert(row.waker_tid);
                parts.woken.insert(row.tid);
            }
        }
        Some(parts)
    }

    /// Whether a thread does.
    pub fn has(&self, thread: &ThreadLedger) -> bool {
        let serves = self.serving.0.contains(&thread.tid);
        let others_serve = self.serving.0.len() > usize::from(serves);
        let talks = self.traffic.as_ref().is_none_or(|serving| serving.has((thread.pid, thread.tid)));
        // Whoever was given work may answer the client itself.
        let would_be_seen = self.followed || !self.woken.contains(&thread.tid);
        let is_alone =
            self.told.contains(&thread.tid) && !self.awaited.contains(&thread.tid) && !talks && would_be_seen;
        // Many short-lived ones together have no number.
        thread.tid == 0 || serves || !others_serve || !is_alone
    }
}
