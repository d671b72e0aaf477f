// SPDX-License-Identifier: Apache-2.0
//! What a walk looks things up in.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::Wakeup;

use super::Node;
use super::ends::{Ends, Kind};
use super::futex;
use super::hand_offs::HandOffs;
use super::timelines::Timelines;
use super::wait_sites::WaitSites;
use super::waits::each_ns;
use super::who::{DNS, INNER, LOCK, PARKED, SLEEP, TIMED, Who, kind_of_thread};
use crate::case::Case;
use crate::syscall::waits_for_no_file;

const DNS_PORT: u32 = 53;

/// Threads of a process that are looked at for what they did while another one waited: who had the lock of their interpreter, whether
/// they computed.
pub const MOST_THREADS: usize = 64;

/// A thread that may have had the lock of an interpreter.
pub struct Holder<'a> {
    pub tid: u32,
    pub comm: &'a str,
    pub on_cpu_ns: f64,
    pub queued_ns: f64,
}

pub struct Context<'a, 'r> {
    pub case: &'a Case<'r>,
    pub ends: &'a Ends<'a>,
    pub timelines: &'a Timelines<'a>,
    pub target: &'a BTreeSet<u32>,
    pub hand_offs: &'a HandOffs,
    pub sites: &'a WaitSites,
}

impl Context<'_, '_> {
    /// Books `ns` on the wait of a row.
    pub fn book<'n>(&self, row: &Wakeup, ns: f64, nodes: &'n mut BTreeMap<Who, Node>) -> &'n mut Node {
        self.book_on(self.who(row), row, ns, nodes)
    }

    /// The same under another name.
    pub fn book_on<'n>(&self, who: Who, row: &Wakeup, ns: f64, nodes: &'n mut BTreeMap<Who, Node>) -> &'n mut Node {
        let node = nodes.entry(who).or_default();
        node.ns += ns;
        node.waits += 1;
        node.number += ns / each_ns(row);
        self.book_places(row, ns, node);
        node
    }

    /// Books where in its code somebody waited.
    pub fn book_places(&self, row: &Wakeup, ns: f64, node: &mut Node) {
        *node.kernel_stacks.entry(row.stack).or_default() += ns;
        let code = self.sites.of(row);
        if code != 0 {
            *node.user_stacks.entry(code).or_default() += ns;
        }
    }

    /// Who waits in a row, and in what.
    pub fn who(&self, row: &Wakeup) -> Who {
        let peer = self.peer(row).unwrap_or_default();
        let (comm, call) = (kind_of_thread(&row.comm), self.case.syscall(row.syscall));
        let mut who = Who { pid: row.pid, comm, call, fd_kind: row.fd_kind.clone(), peer, path: row.path.clone() };
        if self.sites.parks(self.case, row, &who) {
            who.fd_kind = PARKED.to_string();
        } else if waits_for_no_file(&who.call, &row.args) {
            (who.fd_kind, who.peer) = (SLEEP.to_string(), String::new());
        } else if let Some(held) = self.held_in_turn(row) {
            who.fd_kind = held.to_string();
        } else if self.is_for_name(row, &who) {
            who.fd_kind = DNS.to_string();
        } else if self.hand_offs.inner_loops.has(self.case, row) {
            who.fd_kind = INNER.to_string();
        } else if !who.peer.is_empty() && self.gave_up_idly(row) {
            who.peer.clear();
        } else if futex::kind(self.case, row) == TIMED {
            who.fd_kind = TIMED.to_string();
            if self.sites.sleeps(&who) {
                who.fd_kind = SLEEP.to_string();
            }
        }
        who
    }

    /// Whether a name was looked up. What somebody usually does in a call tells only where the socket does not (some
    /// resolvers never connect theirs): another thread of the same kind may wait for its clients in the same call.
    fn is_for_name(&self, row: &Wakeup, who: &Who) -> bool {
        match row.remote_port {
            DNS_PORT => !who.peer.is_empty() || self.sites.asks_dns(who),
            0 => self.sites.asks_dns(who) && !self.ends.clients.ended(self.case, row),
            _ => false,
        }
    }

    fn peer(&self, row: &Wakeup) -> Option<String> {
        self.target.contains(&row.pid).then(|| self.ends.clients.asked_by(row)).flatten()
    }

    /// Whether a wait for a peer ran into its own timeout in a thread that has no client waiting, as far as is known: a
    /// subscription in which nothing came.
    fn gave_up_idly(&self, row: &Wakeup) -> bool {
        !self.hand_offs.serves(row.tid) && self.ends.of(row).is_some_and(|end| end.kind == Kind::Timer)
    }

    /// What threads hold in turn, if a wait was for such a thing.
    pub fn held_in_turn(&self, row: &Wakeup) -> Option<&'static str> {
        self.hand_offs.held_in_turn(self.case, row)
    }

    /// What other threads of its process did while one stood before the lock of their interpreter: whoever had it was on a CPU
    /// or ready for one. Who gave it away at last had it for the last moment only.
    pub fn meanwhile(&self, row: &Wakeup, span: (f64, f64)) -> Vec<Holder<'_>> {
        let others = self.timelines.threads_of(row.pid).filter(|(tid, _)| *tid != row.tid);
        // Of one that has ended, or stands in a wait that goes on, no row tells: the ledger does.
        let able = others.map(|(tid, comm)| (tid, comm, self.timelines.ran_at_most(tid, span)));
        let able = able.filter(|(.., most)| *most > 0.0).take(MOST_THREADS);
        let holder = |(tid, comm, most): (u32, _, f64)| {
            let active = self.timelines.activity(tid, span).active;
            let of = |kind| active.get(&kind).copied().unwrap_or(0.0);
            let part = (most / (of(Kind::OnCpu) + of(Kind::RunQueue)).max(1e-9)).min(1.0);
            Holder { tid, comm, on_cpu_ns: of(Kind::OnCpu) * part, queued_ns: of(Kind::RunQueue) * part }
        };
        able.map(holder).filter(|holder| holder.on_cpu_ns + holder.queued_ns > 0.0).collect()
    }

    /// How many threads were seen to wait for what a wait was for.
    pub fn queue_length(&self, row: &Wakeup) -> usize {
        self.hand_offs.queue_length(self.case, row)
    }

    /// Whether two waits are for the same that is held in turn, as far as that can be told.
    pub fn are_for_the_same(&self, a: &Wakeup, b: &Wakeup) -> bool {
        match (self.held_in_turn(a), self.held_in_turn(b)) {
            // Locks on files are handed around between processes, each with a descriptor of its own.
            (Some(LOCK), Some(LOCK)) if !a.path.is_empty() => a.path == b.path,
            (Some(held), Some(other)) if held == other => {
                let [a, b] = [a, b].map(|row| self.hand_offs.place(self.case, held, row));
                a == b
            }
            _ => false,
        }
    }
}
