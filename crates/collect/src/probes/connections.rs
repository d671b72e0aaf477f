// SPDX-License-Identifier: Apache-2.0
//! Looks at the target's TCP connections: which of the two ends is to speak next, read from fields that the kernel keeps
//! anyway. No hook is paid for; a look costs as much as the target has descriptors.

use std::io::Read;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::ptr::NonNull;

use anyhow::{Context, Result, anyhow};
use libbpf_rs::{AsRawLibbpf, Iter, Link, OpenObject, libbpf_sys};
use plain::Plain;

use super::ledger::Ledger;
use super::{kernel_map, kernel_types, refusal};

mod skel {
    #![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]
    include!(concat!(env!("OUT_DIR"), "/connections.skel.rs"));
}

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
    /// A thread of the process waits for what comes next here, and for nothing else.
    pub awaited: bool,
    /// Its own port.
    pub local_port: u16,
    /// Its peer's port.
    pub remote_port: u16,
    /// Its peer's address.
    pub peer: IpAddr,
}

/// The C struct `connection_row`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawRow {
    at: u64,
    touched_us: u64,
    delivered_us: u64,
    now: u32,
    received_at: u32,
    sent_at: u32,
    unread: u32,
    unsaid: u32,
    in_flight: u32,
    unsent: u32,
    prompt: u32,
    heard: u32,
    tgid: u32,
    awaited: u32,
    peer: [u8; 16],
    family: u16,
    local: u16,
    remote: u16,
    zero: u16,
}

// SAFETY: a `repr(C)` struct of integers without padding: any bytes are valid.
unsafe impl Plain for RawRow {}

/// The loaded iterator.
pub struct Connections<'o>(skel::ConnectionsSkel<'o>);

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
        refusal::load(open, "the kernel refused the program that reads connections").map(Self)
    }

    /// The connections of these processes, and of no other than the target's.
    ///
    /// # Errors
    /// The iterator fails. A process that has ended has no connections.
    pub fn look(&self, pids: &[u32]) -> Result<Vec<Connection>> {
        let walked: Vec<u32> = if pids.len() <= ONE_BY_ONE { pids.to_vec() } else { vec![0] };
        let mut bytes = Vec::new();
        for pid in walked {
            let link = self.attach(pid)?;
            // A process that has just ended cannot be walked.
            let Ok(mut rows) = Iter::new(&link) else { continue };
            rows.read_to_end(&mut bytes).context("failed to read the target's connections")?;
        }
        Ok(decode(&bytes))
    }

    /// The iterator over the descriptors of one process; 0 = of all. Kernels before 6.1 walk all of them either way.
    fn attach(&self, pid: u32) -> Result<Link> {
        let mut which = libbpf_sys::bpf_iter_link_info::default();
        which.task.pid = pid;
        let options = libbpf_sys::bpf_iter_attach_opts {
            sz: size_of::<libbpf_sys::bpf_iter_attach_opts>() as _,
            link_info: &raw mut which,
            link_info_len: size_of::<libbpf_sys::bpf_iter_link_info>() as _,
            ..Default::default()
        };
        let program = self.0.progs.read_connections.as_libbpf_object();
        // SAFETY: the program is loaded and lives as long as `self`; the options live through the call. The library takes
        // maps and cgroups as what to walk, but not processes, hence the call itself.
        let link = unsafe { libbpf_sys::bpf_program__attach_iter(program.as_ptr(), &raw const options) };
        let link = NonNull::new(link).ok_or_else(|| anyhow!("{}", std::io::Error::last_os_error()));
        // SAFETY: a link that was just made by the library and that nobody else owns.
        Ok(unsafe { Link::from_ptr(link.context("failed to attach the iterator of descriptors")?) })
    }
}

/// Rows as the iterator writes them, one after the other. A descriptor that was duplicated is one connection.
pub(crate) fn decode(bytes: &[u8]) -> Vec<Connection> {
    let mut rows: Vec<Connection> =
        bytes.chunks_exact(size_of::<RawRow>()).filter_map(kernel_map::row).map(connection).collect();
    rows.sort_by_key(|c| (c.local_port, c.remote_port, c.peer, c.pid));
    rows.dedup_by_key(|c| (c.local_port, c.remote_port, c.peer));
    rows
}

fn connection(raw: RawRow) -> Connection {
    let peer = match raw.family {
        2 => IpAddr::V4(Ipv4Addr::new(raw.peer[0], raw.peer[1], raw.peer[2], raw.peer[3])),
        _ => Ipv6Addr::from(raw.peer).to_canonical(),
    };
    Connection {
        pid: raw.tgid,
        at_ns: raw.at,
        now: raw.now,
        received_at: raw.received_at,
        sent_at: raw.sent_at,
        touched_us: raw.touched_us,
        delivered_us: raw.delivered_us,
        unread: raw.unread,
        unsaid: raw.unsaid,
        in_flight: raw.in_flight,
        unsent: raw.unsent,
        prompt: raw.prompt != 0,
        heard: raw.heard != 0,
        awaited: raw.awaited != 0,
        local_port: raw.local,
        remote_port: raw.remote,
        peer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_torn_ones_left_out() {
        let mut bytes = vec![0; size_of::<RawRow>()];
        bytes[24..28].copy_from_slice(&7u32.to_ne_bytes());
        bytes[68..72].copy_from_slice(&[127, 0, 0, 1]);
        bytes[84..86].copy_from_slice(&2u16.to_ne_bytes());
        bytes[86..88].copy_from_slice(&80u16.to_ne_bytes());
        let twice = [&bytes[..], &bytes[..], &bytes[..9]].concat();
        let rows = decode(&twice);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].now, rows[0].local_port, rows[0].peer.to_string().as_str()), (7, 80, "127.0.0.1"));
    }
}
