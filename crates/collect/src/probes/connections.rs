// SPDX-License-Identifier: Apache-2.0
//! Looks at the target's TCP connections: which of the two ends is to speak next, read from fields that the kernel keeps
//! anyway. No hook is paid for; a look costs as much as the target has descriptors.

use std::cell::{Cell, RefCell};
use std::io::Read;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use anyhow::{Context, Result, ensure};
use libbpf_rs::{AsRawLibbpf, Iter, Link, OpenObject, libbpf_sys};
use plain::Plain;

use super::ledger::Ledger;
use super::{address, kernel_map, kernel_types, read_all, refusal};

mod skel {
    #![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]
    include!(concat!(env!("OUT_DIR"), "/connections.skel.rs"));
}

use skel::types;

/// Rows of one look, at most: with more, it would take too long and too much memory.
const MOST_ROWS: usize = 200_000;

/// Processes that are walked one by one; of more, one walk over all of the host is cheaper.
const ONE_BY_ONE: usize = 64;

/// One connection at the moment of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Process.
    pub pid: u32,
    /// When, CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// The same in jiffies.
    pub now: u32,
    /// Jiffies at which data came last.
    pub received_at: u32,
    /// Jiffies at which data was sent last.
    pub sent_at: u32,
    /// When something was sent or came last, CLOCK_MONOTONIC us.
    pub touched_us: u64,
    /// When our data was acknowledged last, likewise.
    pub delivered_us: u64,
    /// Bytes that came and were not read.
    pub unread: u32,
    /// Bytes that came since anything was sent, were it an acknowledgement.
    pub unsaid: u32,
    /// Bytes sent and not acknowledged.
    pub in_flight: u32,
    /// Bytes written and not sent.
    pub unsent: u32,
    /// The last data that was sent followed what had come within a few jiffies.
    pub prompt: bool,
    /// Anything ever came.
    pub heard: bool,
    /// Anything was ever sent.
    pub said: bool,
    /// It was asked for, and nobody has answered yet: nothing else is known of it then.
    pub opening: bool,
    /// The other end has closed its side: nothing more comes from it.
    pub closed: bool,
    /// A thread of the process waits for what comes next here, and for nothing else.
    pub awaited: bool,
    /// What the kernel has added up since it was opened.
    pub sums: Sums,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// What keeps it from sending; none where nothing is unsent or on its way.
    pub sending: Option<Sending>,
    /// Its own port.
    pub local_port: u16,
    /// Its peer's port.
    pub remote_port: u16,
    /// Its peer's address.
    pub peer: IpAddr,
}

/// A listener at the moment of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listener {
    /// Its port.
    pub port: u16,
    /// What tells it from others at the same port.
    pub inode: u64,
    /// Connections in its accept queue.
    pub queued: u32,
}

/// What a look found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Connections, sorted by their ports.
    pub connections: Vec<Connection>,
    /// Listeners, sorted by their ports.
    pub listeners: Vec<Listener>,
}

/// What the kernel adds up for a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Jiffies in which there was something to send that nothing but the network held, in which the other end's window held
    /// it, and in which the writer stood before a full send buffer and all of it was on its way.
    pub limited: [u32; 3],
    /// Segments sent again.
    pub retransmits: u32,
    /// Segments with data that came.
    pub segments: u32,
    /// Segments with data that were sent, also again.
    pub segments_out: u32,
}

/// The sending side of a connection that has something unsent or on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Options in force, and what is known besides: see [`option`].
    pub options: u32,
    /// A segment that was not full is on its way.
    pub partial: bool,
    /// Segments that are held lost, or were sent again.
    pub repairing: u32,
    /// Segments on their way.
    pub packets: u32,
    /// How many may be.
    pub cwnd: u32,
    /// A full segment, bytes.
    pub mss: u32,
    /// The other end's window, bytes.
    pub window: u32,
    /// The same at its widest so far.
    pub widest: u32,
    /// Round trip, smoothed, us: with the time that the other end takes to acknowledge.
    pub srtt_us: u32,
    /// The shortest round trip of late, us.
    pub min_rtt_us: u32,
    /// The congestion window has met no limit of the network yet.
    pub slow_start: bool,
    /// Bytes that were acknowledged since the connection was opened, as far as they fit.
    pub acked: u32,
}

/// Bits of [`Sending::options`].
pub mod option {
    /// TCP_NODELAY.
    pub const NODELAY: u32 = 1;
    /// TCP_CORK.
    pub const CORK: u32 = 2;
    /// What is written is sent at once, this time.
    pub const PUSH: u32 = 4;
    /// The program has sized its send buffer itself.
    pub const OWN_SNDBUF: u32 = 8;
    /// The program has sized its receive buffer itself.
    pub const OWN_RCVBUF: u32 = 16;
    /// SO_KEEPALIVE.
    pub const KEEPALIVE: u32 = 32;
    /// Whoever writes found the send buffer full.
    pub const NO_ROOM: u32 = 64;
    /// Pacing lets it send at some later time.
    pub const PACED: u32 = 128;
}

// SAFETY: a C struct of integers without padding: any bytes are valid.
unsafe impl Plain for types::connection_row {}

/// The loaded iterator.
pub struct Connections<'o> {
    skel: skel::ConnectionsSkel<'o>,
    /// Room for what a look reads, used again by the next.
    bytes: RefCell<Vec<u8>>,
    /// This kernel walks the descriptors of all processes or of none.
    walks_all: Cell<bool>,
}

impl<'o> Connections<'o> {
    /// Loads the program; nothing is looked at yet.
    ///
    /// # Errors
    /// The kernel refuses the program.
    pub fn load(storage: &'o mut MaybeUninit<OpenObject>, ledger: &Ledger<'_>) -> Result<Self> {
        let builder = skel::ConnectionsSkelBuilder::default();
        let mut open = refusal::open(builder, storage, "the program that reads connections")?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.task_type = kernel_types::task();
        }
        open.maps.threads.reuse_fd(ledger.threads().as_fd()).context("failed to share the map of threads")?;
        let skel = refusal::load(open, "the kernel refused the program that reads connections")?;
        Ok(Self { skel, bytes: RefCell::default(), walks_all: Cell::new(false) })
    }

    /// The connections of these processes, and of no other than the target's.
    ///
    /// # Errors
    /// The iterator fails, or there are more than [`MOST_ROWS`]. A process that has ended has no connections.
    pub fn look(&self, pids: &[u32]) -> Result<Look> {
        let walked: Vec<u32> = if pids.len() <= ONE_BY_ONE { pids.to_vec() } else { vec![0] };
        let most = MOST_ROWS * size_of::<types::connection_row>();
        let mut bytes = self.bytes.borrow_mut();
        bytes.clear();
        let walked = if self.walks_all.get() { vec![0] } else { walked };
        for pid in walked {
            let link = self.attach(pid)?;
            // A process that has just ended cannot be walked.
            let Ok(rows) = Iter::new(&link) else { continue };
            let mut rows = rows.take((most - bytes.len()) as u64);
            read_all(&mut rows, &mut bytes).context("failed to read the target's connections")?;
            ensure!(bytes.len() < most, "it has more than {MOST_ROWS} connections, which are too many to look at");
            // That was everybody's already.
            if self.walks_all.get() {
                break;
            }
        }
        Ok(decode(&bytes))
    }

    /// The iterator over the descriptors of one process; 0 = of all. Kernels before 6.1 know of no process here, and refuse.
    fn attach(&self, pid: u32) -> Result<Link> {
        self.attach_to(pid)
            .or_else(|error| {
                let is_unknown = pid != 0 && error.raw_os_error() == Some(libc::E2BIG);
                self.walks_all.set(is_unknown);
                if is_unknown { self.attach_to(0) } else { Err(error) }
            })
            .context("failed to attach the iterator of descriptors")
    }

    fn attach_to(&self, pid: u32) -> std::io::Result<Link> {
        let mut which = libbpf_sys::bpf_iter_link_info::default();
        which.task.pid = pid;
        let options = libbpf_sys::bpf_iter_attach_opts {
            sz: size_of::<libbpf_sys::bpf_iter_attach_opts>() as _,
            link_info: &raw mut which,
            link_info_len: size_of::<libbpf_sys::bpf_iter_link_info>() as _,
            ..Default::default()
        };
        let program = self.skel.progs.read_connections.as_libbpf_object();
        // SAFETY: the program is loaded and lives as long as `self`; the options live through the call. The library takes
        // maps and cgroups as what to walk, but not processes, hence the call itself.
        let link = unsafe { libbpf_sys::bpf_program__attach_iter(program.as_ptr(), &raw const options) };
        let link = NonNull::new(link).ok_or_else(std::io::Error::last_os_error)?;
        // SAFETY: a link that was just made by the library and that nobody else owns.
        Ok(unsafe { Link::from_ptr(link) })
    }
}

/// Rows as the iterator writes them, one after the other. A descriptor that was duplicated is one connection, or listener.
pub(crate) fn decode(bytes: &[u8]) -> Look {
    let rows =
        bytes.chunks_exact(size_of::<types::connection_row>()).filter_map(kernel_map::row::<types::connection_row>);
    let (mut connections, mut listeners) = (Vec::new(), Vec::new());
    for raw in rows {
        match raw.inode {
            0 => connections.push(connection(&raw)),
            inode => listeners.push(Listener { port: raw.ports.local, inode, queued: raw.queued }),
        }
    }
    connections.sort_by_key(|c| (c.local_port, c.remote_port, c.peer, c.pid));
    connections.dedup_by(|more, kept| {
        let same = (more.local_port, more.remote_port, more.peer) == (kept.local_port, kept.remote_port, kept.peer);
        // A parent that has not closed what its child serves reads nothing of it.
        kept.awaited |= same && more.awaited;
        same
    });
    listeners.sort_unstable();
    listeners.dedup_by_key(|l| (l.port, l.inode));
    Look { connections, listeners }
}

fn connection(raw: &types::connection_row) -> Connection {
    let peer = address(raw.ports.family, raw.ports.peer, raw.ports.remote).ip();
    // The end of what comes takes a place in the sequence as a byte does, the last one.
    let of_bytes = |places: u32| places.saturating_sub(u32::from(raw.closed != 0));
    Connection {
        pid: raw.tgid,
        at_ns: raw.at,
        now: raw.now,
        received_at: raw.received_at,
        sent_at: raw.sent_at,
        touched_us: raw.touched_us,
        delivered_us: raw.delivered_us,
        unread: of_bytes(raw.unread),
        unsaid: of_bytes(raw.unsaid),
        in_flight: raw.in_flight,
        unsent: raw.unsent,
        prompt: raw.prompt != 0,
        heard: raw.heard != 0,
        said: raw.said != 0,
        opening: raw.opening != 0,
        closed: raw.closed != 0,
        awaited: raw.awaited != 0,
        sums: Sums {
            limited: raw.limited,
            retransmits: raw.retransmits,
            segments: raw.segments,
            segments_out: raw.segments_out,
        },
        cwnd: raw.cwnd,
        sending: (raw.in_flight > 0 || raw.unsent > 0).then(|| sending(raw)),
        local_port: raw.ports.local,
        remote_port: raw.ports.remote,
        peer,
    }
}

fn sending(raw: &types::connection_row) -> Sending {
    Sending {
        options: raw.options,
        partial: raw.partial != 0,
        repairing: raw.repairing,
        packets: raw.packets,
        cwnd: raw.cwnd,
        mss: raw.mss,
        window: raw.window,
        widest: raw.widest,
        srtt_us: raw.srtt_us,
        min_rtt_us: raw.min_rtt_us,
        slow_start: raw.slow_start != 0,
        acked: raw.acked,
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn rows_are_read_and_torn_ones_left_out() {
        let mut bytes = vec![0; size_of::<types::connection_row>()];
        let put = |bytes: &mut [u8], at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(&mut bytes, offset_of!(types::connection_row, now), &7u32.to_ne_bytes());
        put(&mut bytes, offset_of!(types::connection_row, ports.peer), &[127, 0, 0, 1]);
        put(&mut bytes, offset_of!(types::connection_row, ports.family), &2u16.to_ne_bytes());
        put(&mut bytes, offset_of!(types::connection_row, ports.local), &80u16.to_ne_bytes());
        let mut listener = bytes.clone();
        put(&mut listener, offset_of!(types::connection_row, inode), &9u64.to_ne_bytes());
        put(&mut listener, offset_of!(types::connection_row, queued), &3u32.to_ne_bytes());
        let twice = [&bytes[..], &bytes[..], &listener[..], &listener[..], &bytes[..9]].concat();
        let Look { connections: rows, listeners } = decode(&twice);
        assert_eq!((rows.len(), &listeners[..]), (1, &[Listener { port: 80, inode: 9, queued: 3 }][..]));
        assert_eq!((rows[0].now, rows[0].local_port, rows[0].peer.to_string().as_str()), (7, 80, "127.0.0.1"));
    }
}
