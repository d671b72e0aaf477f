// SPDX-License-Identifier: Apache-2.0
//! Who asks the target: told by the ports that it listens on.

use std::collections::BTreeSet;

use recording::counters::snmp;
use recording::tables::Wakeup;

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::facts::counters::Counters;
use crate::facts::listening::Listening;
use crate::facts::requests::Requests;
use crate::ledger::blocked::UNINTERRUPTIBLE;
use crate::syscall::{Family, family, waits_for_bytes};

/// Address family of Unix sockets, on which questions are not seen.
pub const UNIX: u32 = 1;

/// The other end of one that the target asked over: it has no address that tells.
pub const UNIX_PEER: &str = "a Unix socket";

/// Where the kernel hands a user-space file system what it is asked.
const FUSE: &str = "/dev/fuse";

/// The ports at which clients ask the target.
pub struct Clients {
    listening: BTreeSet<u32>,
    /// TCP ports that anybody listens on in the target's network namespaces: what the target has at one of them, it was
    /// handed by whoever accepted it.
    handed_on: BTreeSet<u32>,
    target: BTreeSet<u32>,
    /// Whether it takes datagrams.
    datagrams: bool,
}

impl Fact for Clients {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let listening = case.fact::<Listening>()?;
        Ok(Self {
            datagrams: listening.all().any(|socket| socket.is_udp),
            listening: listening.all().filter_map(|socket| socket.port).collect(),
            handed_on: case.recording.meta.target.ports.iter().copied().chain(listening.tcp_ports()).collect(),
            target: super::target_pids(case),
        })
    }
}

/// Of what clients ask, by another way than over TCP connections: with less, hardly anybody does, as where somebody looks how it is. Of
/// datagrams those of everybody in the namespace are counted.
const FEW: f64 = 0.05;

/// Whether so many datagrams came that clients may ask in them.
fn come_datagrams(case: &Case) -> bool {
    let came = case.fact::<Counters>().ok().and_then(|counters| counters.grew(snmp::IN_DATAGRAMS));
    let Ok(requests) = case.fact::<Requests>() else { return true };
    let asked = requests.endpoints.iter().filter(|e| e.accepted).map(|e| e.response.count).sum::<f64>();
    came.is_none_or(|came| came > asked * requests.scale() * FEW)
}

impl Clients {
    /// Whether a process is one of the target, and not of those whom it asks.
    pub fn is_own(&self, pid: u32) -> bool {
        self.target.contains(&pid)
    }

    /// Whether the target listens on a port itself.
    pub fn serves_port(&self, port: u32) -> bool {
        self.listening.contains(&port)
    }

    /// Whether one end of a connection, at which process `pid` is, was accepted by the target, by its own and its peer's
    /// port. Unix sockets have no ports: there the end that was accepted has the listener's name, and the one that asked
    /// for it mostly none.
    fn is_our_end(&self, pid: u32, (family, own, peer): (u32, u32, u32)) -> bool {
        if family == UNIX {
            return own == 1 && peer == 0;
        }
        let handed_on = || self.target.contains(&pid) && self.handed_on.contains(&own);
        own != 0 && (self.listening.contains(&own) || handed_on())
    }

    /// Whether a client of the target ended the wait by asking for something, so that the sleeper was idle until then:
    /// it wrote to the target's port, or the sleeper waited for a connection, or for one that it had accepted.
    pub fn ended(&self, case: &Case, row: &Wakeup) -> bool {
        let call = family(&case.syscall(row.syscall));
        let waker = (row.waker_family, row.waker_remote_port, row.waker_local_port);
        // What a client writes wakes whoever waits at a socket. Who sleeps, or waits for a disk, was woken by an interrupt that
        // the client's call was held up by.
        let at_socket = call != Family::Sleep && !row.io_wait && row.state & UNINTERRUPTIBLE == 0;
        let asked = at_socket && row.context == "thread" && self.is_our_end(row.pid, waker);
        let reads = matches!(call, Family::Receive | Family::Poll)
            && self.is_our_end(row.pid, (row.family, row.local_port, row.remote_port));
        let serves_files = call == Family::Receive && row.path == FUSE;
        asked || reads || serves_files || call == Family::Accept
    }

    /// Whether a wait of somebody else than the target ended with what came on a connection that was made to that one. Of a poll only who
    /// wrote it is known.
    pub fn is_of_peers_client(&self, row: &Wakeup) -> bool {
        let was_made_to_it = row.asked > 0 || self.handed_on.contains(&row.local_port);
        let came = row.local_port != 0 && row.remote_port != 0 && was_made_to_it;
        let written = row.context == "thread" && self.handed_on.contains(&row.waker_remote_port);
        !self.target.contains(&row.pid) && (came || written)
    }

    /// Waits of the target that processes of this host ended by asking it for something.
    pub fn askings<'c>(&self, case: &'c Case<'_>) -> Vec<&'c Wakeup> {
        let of_target = |row: &&Wakeup| self.target.contains(&row.pid) && row.context == "thread";
        case.recording.rows::<Wakeup>().iter().filter(of_target).filter(|row| self.ended(case, row)).collect()
    }

    /// Whether some client of the target came by another way than a TCP connection: a Unix socket, or datagrams.
    pub fn come_otherwise(&self, case: &Case) -> bool {
        let asks = |row: &&Wakeup| self.target.contains(&row.pid) && self.ended(case, row);
        let is_other = |row: &&Wakeup| [row.family, row.waker_family].contains(&UNIX) || row.path == FUSE;
        let rows = || case.recording.rows::<Wakeup>().iter().filter(asks);
        let (all, others) = (rows().count() as f64, rows().filter(is_other).count() as f64);
        self.datagrams && come_datagrams(case) || others > all * FEW
    }

    /// Whether a wait is a blocking read of a client's connection. Who does that serves one client at a time. A thread that
    /// never waits for bytes there may still stand before the socket's own lock, which cannot be interrupted.
    pub fn is_read(&self, case: &Case, row: &Wakeup) -> bool {
        let blocks = waits_for_bytes(&case.syscall(row.syscall));
        let ours = || self.is_our_end(row.pid, (row.family, row.local_port, row.remote_port));
        blocks && row.state & UNINTERRUPTIBLE == 0 && row.remote_port != 0 && ours()
    }

    /// Whom a thread of the target asked through the socket that it waits for: the other end of a connection that the
    /// target made itself.
    pub fn asked_by(&self, row: &Wakeup) -> Option<String> {
        let end = (row.family, row.local_port, row.remote_port);
        match row.family {
            0 => None,
            _ if self.is_our_end(row.pid, end) || row.remote_port == 0 => None,
            UNIX => Some(UNIX_PEER.to_string()),
            _ if row.peer.contains(':') => Some(format!("[{}]:{}", row.peer, row.remote_port)),
            _ if row.peer.is_empty() => None,
            _ => Some(format!("{}:{}", row.peer, row.remote_port)),
        }
    }
}
