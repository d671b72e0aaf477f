// SPDX-License-Identifier: Apache-2.0
//! Contended for which threads wait: locks, and what they hand around among each other, such as a pooled connection.
//!
//! A lock of the C library, of Rust's or of Go's runtime is told by its futex. Language runtimes keep others themselves
//! (monitors, semaphores, pools of connections), and their threads are parked like idle ones. But a thread that blocks in
//! reads of a client's connection has a request in hand whenever it waits for anything else: if another such thread ends
//! that wait, and stood in the same queue itself at other times, it gave up what the first one needed. Threads without work
//! are woken by whoever brings it, and those that wait for news by whoever has them, who never queues.
//!
//! Processes that serve one client each (backends of a database) tell each other by a signal, and wait for it in a loop without their
//! clients.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::Wakeup;

use super::clients::Clients;
use super::futex::{is_futex, is_lock};
use super::inner_loops::InnerLoops;
use super::wait_sites::{At, WaitSites};
use super::waits::each_ns;
use super::who::{HAND_OFF, INTERPRETER, LOCK, kind_of_thread};
use crate::case::Case;
use crate::ledger::blocked::UNINTERRUPTIBLE;
use crate::statistics::share;
use crate::syscall::{sends_signal, waits_for_bytes};

/// Tells waits for what threads hold in turn.
#[derive(Clone, Debug, Default)]
pub struct HandOffs {
    serving: BTreeSet<u32>,
    /// Some of them are the target's.
    are_own: bool,
    /// Of these, the ones that waited for another of them.
    queued: BTreeSet<u32>,
    /// Waits of loops that are not for clients, although the call is the same.
    pub inner_loops: InnerLoops,
    /// Where locks of interpreters are.
    interpreters: Vec<At>,
    /// Whether threads that end each other's waits mostly hand such a lock on, where no address tells.
    in_turn: bool,
    /// Threads that were seen to wait for each, by its place.
    before: BTreeMap<(u32, u64), BTreeSet<u32>>,
}

/// Reads of clients' connections, of all waits in reads and futex: a thread that serves one client at a time reads once a
/// request, and takes a few locks for it. Threads that a runtime hands its work to block in a read by accident.
const MIN_READS: f64 = 0.02;

impl HandOffs {
    /// Learns which threads block in reads of their clients, of the target and of whom it asks, and who stands before what.
    pub fn new(
        case: &Case,
        clients: &Clients,
        target: &BTreeSet<u32>,
        sites: &WaitSites,
        inner_loops: InnerLoops,
    ) -> Self {
        let rows = || case.recording.rows::<Wakeup>().iter();
        let (interpreters, in_turn) = (sites.interpreters().to_vec(), sites.mostly_interpreter());
        let serving = serving(case, clients, rows());
        let are_own = rows().any(|row| target.contains(&row.pid) && serving.contains(&row.tid));
        let mut hand_offs = Self { serving, are_own, interpreters, in_turn, inner_loops, ..Self::default() };
        hand_offs.queued = rows().filter(|row| hand_offs.is_between_serving(case, row)).map(|row| row.tid).collect();
        let mut before: BTreeMap<_, BTreeSet<u32>> = BTreeMap::new();
        let is_handed =
            |row: &Wakeup| hand_offs.is_between_backends(case, row) || hand_offs.is_between_serving(case, row);
        for row in rows().filter(|row| target.contains(&row.pid) || is_handed(row)) {
            if let Some(held) = hand_offs.held_in_turn(case, row) {
                before.entry(hand_offs.place(case, held, row)).or_default().insert(row.tid);
            }
        }
        Self { before, ..hand_offs }
    }

    /// How many threads were seen to wait for the same; 1 at least.
    pub fn queue_length(&self, case: &Case, row: &Wakeup) -> usize {
        let waiters = self.held_in_turn(case, row).and_then(|held| self.before.get(&self.place(case, held, row)));
        waiters.map_or(1, BTreeSet::len).max(1)
    }

    fn is_between_serving(&self, case: &Case, row: &Wakeup) -> bool {
        let of_two = row.context == "thread" && row.tid != row.waker_tid;
        let serve = self.serving.contains(&row.tid) && self.serving.contains(&row.waker_tid);
        of_two && serve && is_futex(case, row.syscall) && !self.is_interpreters(case, row)
    }

    /// The same between two processes that serve one client each, by a signal: over a socket one would ask the other.
    fn is_between_backends(&self, case: &Case, row: &Wakeup) -> bool {
        let of_two = row.context == "thread" && row.pid != row.waker_pid;
        let serve = || [row.tid, row.waker_tid].into_iter().all(|tid| self.inner_loops.serves_one(tid));
        of_two && serve() && self.inner_loops.has(case, row) && sends_signal(&case.syscall(row.waker_syscall))
    }

    /// Whether a wait was for the lock of an interpreter.
    fn is_interpreters(&self, case: &Case, row: &Wakeup) -> bool {
        let Some(&address) = row.args.first().filter(|_| !self.interpreters.is_empty()) else { return false };
        let is_near = |at: &At| at.pid == row.pid && at.address.abs_diff(address) <= at.wide;
        is_futex(case, row.syscall) && self.interpreters.iter().any(is_near)
    }

    /// What tells such things apart: the process, and the address of a lock. Of what a runtime hands around nothing is known: each of
    /// its threads sleeps at an address of its own; nor of what processes hand to each other.
    pub fn place(&self, case: &Case, held: &str, row: &Wakeup) -> (u32, u64) {
        const PRIVATE: u64 = 128; // FUTEX_PRIVATE_FLAG
        let address = || row.args.first().copied().unwrap_or(0);
        match held {
            // One that processes share, as forked workers do, is at the same address in each of them.
            LOCK if row.args.get(1).is_some_and(|operation| operation & PRIVATE == 0) => (0, address()),
            LOCK => (row.pid, address()),
            HAND_OFF if self.inner_loops.has(case, row) => (0, 0),
            _ => (row.pid, 0),
        }
    }

    /// Whether there are threads of the target that serve one client at a time.
    pub fn serve(&self) -> bool {
        self.are_own
    }

    /// Whether a thread serves one client at a time.
    pub fn serves(&self, tid: u32) -> bool {
        self.serving.contains(&tid)
    }

    /// What threads hold in turn, if a wait was for such a thing: [`LOCK`], [`INTERPRETER`] or [`HAND_OFF`].
    pub fn held_in_turn(&self, case: &Case, row: &Wakeup) -> Option<&'static str> {
        if self.is_interpreters(case, row) {
            return Some(INTERPRETER);
        }
        if is_lock(case, row) && !is_between_programs(row) || is_file_lock(case, row) {
            return Some(LOCK);
        }
        if self.is_between_backends(case, row) {
            return Some(HAND_OFF);
        }
        let handed = self.is_between_serving(case, row) && self.queued.contains(&row.waker_tid);
        handed.then_some(if self.in_turn { INTERPRETER } else { HAND_OFF })
    }
}

/// Whether another program ended a wait: a word in memory that two programs share is rather a question to the other one, though what
/// stands in it may look like a lock. Processes that share locks are mostly forks of one.
fn is_between_programs(row: &Wakeup) -> bool {
    let of_another = row.context == "thread" && row.waker_pid != row.pid;
    of_another && kind_of_thread(&row.waker_comm) != kind_of_thread(&row.comm)
}

/// Threads that serve one client at a time.
fn serving<'r>(case: &Case, clients: &Clients, rows: impl Iterator<Item = &'r Wakeup>) -> BTreeSet<u32> {
    let mut threads: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for row in rows {
        // Long waits are picked more often than short ones; what counts is how many there were.
        let number = row.blocked_ns.max(row.wait_ns) as f64 / each_ns(row);
        let (reads, all) = threads.entry(row.tid).or_default();
        let is_peers = || waits_for_bytes(&case.syscall(row.syscall)) && clients.is_of_peers_client(row);
        let is_read = clients.is_read(case, row) || is_peers();
        *reads += if is_read { number } else { 0.0 };
        *all += if is_read || is_futex(case, row.syscall) { number } else { 0.0 };
    }
    threads
        .into_iter()
        .filter(|(_, (reads, all))| *reads > 0.0 && share(*reads, *all) >= MIN_READS)
        .map(|t| t.0)
        .collect()
}

/// Whether a wait is for a lock on a file. fcntl sleeps interruptibly for nothing else.
fn is_file_lock(case: &Case, row: &Wakeup) -> bool {
    match case.syscall(row.syscall).as_str() {
        "flock" => true,
        "fcntl" => row.state & UNINTERRUPTIBLE == 0,
        _ => false,
    }
}
