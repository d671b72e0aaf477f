// SPDX-License-Identifier: Apache-2.0
//! Packets that the kernel dropped, by reason, place and whose they were. One tracepoint of the whole host; the network namespace
//! of the target is told by its number.

#![allow(unsafe_code)] // reading C structs out of maps; every use says why it is sound

use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, Result, bail};
use libbpf_rs::Link;
use libbpf_rs::skel::Skel;
use plain::Plain;
use recording::Tables;
use recording::tables::{Drop, Process};
use stacks::Stacks;

use crate::collector::{Collector, Kind, Shared, SliceEnd, Slot};
use crate::courtesy;
use crate::probes::{Kept, Probe, kernel_map, kernel_types, mark_listening, refusal, run_stats, whose};
use crate::target::tcp_ports_of;

mod skel {
    #![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]
    include!(concat!(env!("OUT_DIR"), "/drops.skel.rs"));
}
use skel::types;

const HOOK: &str = "kfree_skb";

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "drop",
    facility: Some(("dropped packets", "where on this host packets are dropped, and why; without them only that some are lost is known")),
    tables: |tables| tables.extend::<Drop>([]),
    start: |start, slot| Ok(Box::new(Drops::load(slot, start.network()?, start.listening())?)),
};

// SAFETY: integers only, and no padding that is read: any bytes are valid. Generated from the C source.
unsafe impl Plain for types::drop_key {}
// SAFETY: as above.
unsafe impl Plain for types::drop_counts {}

/// The loaded and attached probe.
pub struct Drops<'o> {
    skel: skel::DropsSkel<'o>,
    link: Option<Link>,
}

impl<'o> Drops<'o> {
    /// Loads the program for the network namespace of this number and attaches it. At `ports` somebody listens there.
    ///
    /// # Errors
    /// The kernel refuses, or lacks the tracepoint.
    pub fn load(slot: Slot<'o>, network: u32, ports: impl IntoIterator<Item = u16>) -> Result<Self> {
        if !kernel_types::has_hook(HOOK) {
            bail!("this kernel has no tracepoint {HOOK}");
        }
        let mut open = refusal::open(skel::DropsSkelBuilder::default(), slot, "the program of drops")?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.network = network;
            rodata.tells_reason = kernel_types::arguments(HOOK) > 2;
            rodata.tells_receiver = kernel_types::arguments(HOOK) > 3;
            let reason = |word: &str| kernel_types::drop_reason_number(word).unwrap_or(u32::MAX);
            rodata.no_socket = reason("NO_SOCKET");
            (rodata.purged, rodata.closed) = (reason("QUEUE_PURGE"), reason("SOCKET_CLOSE"));
        }
        let skel = refusal::load(open, "the kernel refused the program of drops")?;
        let mut loaded = Self { skel, link: None };
        loaded.listen(ports);
        let attach = || loaded.skel.progs.on_drop.attach().context("failed to attach `on_drop`");
        loaded.link = Some(courtesy::urgently(attach)?);
        Ok(loaded)
    }

    fn listen(&mut self, ports: impl IntoIterator<Item = u16>) {
        let Some(bss) = self.skel.maps.bss_data.as_deref_mut() else { return };
        mark_listening(&mut bss.listening, ports);
    }

    /// What was counted since the last call, as rows of the slice that ends at `t_ns`; the places are kept in `stacks`.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn rows(&mut self, t_ns: u64, stacks: &mut Stacks) -> Result<Vec<Drop>> {
        let counted = kernel_map::drain::<types::drop_key, u64>(&self.skel.maps.drops)?;
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            bss.own_groups = 0;
        }
        let mut row = |(key, count): &(types::drop_key, u64)| row(t_ns, key, *count, place(key.place, stacks));
        let mut rows: Vec<Drop> = counted.iter().map(&mut row).collect();
        rows.sort_by(|a, b| (&a.reason, b.count, a.port, &a.peer).cmp(&(&b.reason, a.count, b.port, &b.peer)));
        Ok(rows)
    }

    fn counts(&self) -> Result<types::drop_counts> {
        let mut sum = types::drop_counts::default();
        for c in kernel_map::per_cpu::<types::drop_counts>(&self.skel.maps.drop_counts)? {
            sum.hits += c.hits;
            sum.kept += c.kept;
            sum.lost += c.lost;
        }
        Ok(sum)
    }
}

impl Probe for Drops<'_> {
    fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        vec![(HOOK, self.skel.progs.on_drop.as_fd())]
    }

    fn runs(&self) -> Result<Vec<(&'static str, u64)>> {
        Ok(vec![(HOOK, self.counts()?.hits)])
    }

    fn losses(&self) -> Result<Vec<Kept>> {
        let c = self.counts()?;
        Ok(vec![Kept { what: "dropped packets", kept: c.kept, lost: c.lost }])
    }

    fn map_bytes(&self) -> u64 {
        run_stats::map_bytes(self.skel.object(), &[])
    }

    fn detach(&mut self) {
        self.link = None;
    }
}

impl Collector for Drops<'_> {
    /// Leaves out what came since the hook is on: counters are read from now on.
    fn begin(&mut self, shared: &mut Shared<'_>, _: &mut Tables) -> Result<()> {
        self.rows(0, &mut shared.stacks).map(drop)
    }

    fn slice(&mut self, shared: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        tables.extend(self.rows(end.t_ns, &mut shared.stacks)?);
        Ok(())
    }

    fn come(&mut self, processes: &[Process]) {
        self.listen(tcp_ports_of(processes));
    }

    fn probe<'a>(&'a self, _: &'a Shared<'_>) -> Option<&'a dyn Probe> {
        Some(self)
    }

    fn probe_mut<'a>(&'a mut self, _: &'a mut Shared<'_>) -> Option<&'a mut dyn Probe> {
        Some(self)
    }
}

/// A stack of one frame; 0 = the kernel did not say where. It says where the call returns to.
fn place(address: u64, stacks: &mut Stacks) -> u32 {
    if address == 0 {
        return 0;
    }
    let frames = stacks.kernel(&[address.wrapping_sub(1)]);
    stacks.intern(&frames, &[], true)
}

fn row(t_ns: u64, key: &types::drop_key, count: u64, stack: u32) -> Drop {
    let (role, port, peer) = whose(key.role, key.family, key.peer, key.port);
    let protocol = match i32::from(key.protocol) {
        libc::IPPROTO_TCP => "tcp",
        libc::IPPROTO_UDP => "udp",
        _ => "other",
    };
    let reason = match key.reason {
        0 => String::new(), // it does not tell
        number => kernel_types::drop_reason(number as usize),
    };
    Drop { t_ns, reason, protocol: protocol.into(), role, port, peer, begins: key.begins != 0, stack, count }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_named_by_port_or_peer() {
        let mut peer = [0; 16];
        peer[..4].copy_from_slice(&[10, 0, 0, 9]);
        let row_of = |key| row(7, &key, 3, 0);
        let made = row_of(types::drop_key { peer, family: 2, port: 5432, protocol: 6, ..Default::default() });
        let told = (made.role.as_str(), made.peer.as_str(), made.port, made.protocol.as_str(), made.count, made.t_ns);
        assert_eq!(told, ("made", "10.0.0.9:5432", 0, "tcp", 3, 7));
        let datagram = row_of(types::drop_key { role: 2, port: 53, protocol: 17, ..Default::default() });
        let told = (datagram.role.as_str(), datagram.peer.as_str(), datagram.port, datagram.protocol.as_str());
        assert_eq!(told, ("none", "", 53, "udp"));
        let others = row_of(types::drop_key { role: 3, protocol: 1, reason: 0x30001, ..Default::default() });
        assert_eq!((others.role.as_str(), others.protocol.as_str(), others.reason.as_str()), ("others", "other", "196609"));
    }

    #[test]
    fn a_place_is_a_stack_of_one_frame() {
        let mut stacks = Stacks::new();
        assert_eq!(place(0, &mut stacks), 0);
        let first = place(0xffff_ffff_8100_0010, &mut stacks);
        assert!(first != 0 && place(0xffff_ffff_8100_0010, &mut stacks) == first);
    }
}
