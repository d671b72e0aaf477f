// SPDX-License-Identifier: Apache-2.0
//! Who asks the target: told by the ports that it listens on.

use std::collections::BTreeSet;

use recording::tables::{Process, Wakeup};

use crate::case::{Case, Fact};
use crate::syscall::{Family, family};
use crate::verdict::Gap;

/// Address family of Unix sockets.
const UNIX: u32 = 1;

/// Task state of who waits for a disk or a lock of the kernel.
const UNINTERRUPTIBLE: u32 = 2;

/// The ports at which clients ask the target.
pub struct Clients {
    listening: BTreeSet<u32>,
}

impl Fact for Clients {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let processes = case.recording.rows::<Process>().iter().flat_map(|p| &p.listen);
        let all = processes.chain(&case.recording.meta.target.listen);
        let port = |socket: &String| socket.rsplit(':').next()?.split_whitespace().next()?.parse().ok();
        Ok(Self { listening: all.filter_map(port).collect() })
    }
}

impl Clients {
    /// Whether one end of a connection was accepted by the target, by its own and its peer's port. Unix sockets have no
    /// ports: there the end that was accepted has the listener's name, and the one that asked for it mostly none.
    fn is_our_end(&self, (family, own, peer): (u32, u32, u32)) -> bool {
        if family == UNIX { own == 1 && peer == 0 } else { own != 0 && self.listening.contains(&own) }
    }

    /// Whether a client of the target ended the wait by asking for something, so that the sleeper was idle until then:
    /// it wrote to the target's port, or the sleeper waited for a connection, or for one that it had accepted.
    pub fn ended(&self, case: &Case, row: &Wakeup) -> bool {
        let call = family(&case.syscall(row.syscall));
        let waker = (row.waker_family, row.waker_remote_port, row.waker_local_port);
        // What a client writes wakes whoever waits at a socket. Who sleeps, or waits for a disk, was woken by an interrupt that
        // the client's call was held up by.
        let at_socket = call != Family::Sleep && !row.io_wait && row.state & UNINTERRUPTIBLE == 0;
        let asked = at_socket && row.context == "thread" && self.is_our_end(waker);
        let reads = matches!(call, Family::Receive | Family::Poll)
            && self.is_our_end((row.family, row.local_port, row.remote_port));
        asked || reads || call == Family::Accept
    }

    /// Whether a wait is a blocking read of a client's connection. Who does that serves one client at a time.
    pub fn is_read(&self, case: &Case, row: &Wakeup) -> bool {
        let call = case.syscall(row.syscall);
        let blocks = family(&call) == Family::Receive || matches!(call.as_str(), "poll" | "ppoll");
        blocks && row.remote_port != 0 && self.is_our_end((row.family, row.local_port, row.remote_port))
    }

    /// Whom a thread of the target asked through the socket that it waits for: the other end of a connection that the
    /// target made itself.
    pub fn asked_by(&self, row: &Wakeup) -> Option<String> {
        let end = (row.family, row.local_port, row.remote_port);
        match row.family {
            0 => None,
            _ if self.is_our_end(end) || row.remote_port == 0 => None,
            UNIX => Some("a Unix socket".to_string()),
            _ if row.peer.contains(':') => Some(format!("[{}]:{}", row.peer, row.remote_port)),
            _ if row.peer.is_empty() => None,
            _ => Some(format!("{}:{}", row.peer, row.remote_port)),
        }
    }
}
