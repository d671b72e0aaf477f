// SPDX-License-Identifier: Apache-2.0
//! TCP segments that were sent again, and resets, by port and peer. Three tracepoints that fire rarely and on the whole host;
//! the network namespace of the target is told by its number.

#![allow(unsafe_code)] // reading C structs out of maps; every use says why it is sound

use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, Result, bail};
use libbpf_rs::skel::Skel;
use libbpf_rs::{Link, ProgramMut};
use plain::Plain;
use recording::Tables;
use recording::tables::{Process, Retransmit};

use crate::collector::{Collector, Kind, Shared, SliceEnd, Slot};
use crate::courtesy;
use crate::probes::{Kept, Probe, kernel_map, kernel_types, mark_listening, refusal, run_stats, whose};
use crate::sockets::tcp_state;
use crate::target::tcp_ports_of;

mod skel {
    #![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]
    include!(concat!(env!("OUT_DIR"), "/retransmits.skel.rs"));
}
use skel::types;

/// What it needs of the kernel, in the order of the C enum `event`; and what its rows say.
const HOOKS: [&str; 3] = ["tcp_retransmit_skb", "tcp_send_reset", "tcp_receive_reset"];
const EVENTS: [&str; 3] = ["retransmit", "reset_sent", "reset_received"];

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "retransmit",
    facility: Some((
        "retransmissions and resets",
        "which connections lose segments or are cut off; without them only the host's sums are known",
    )),
    tables: |_| (),
    start: |start, slot| Ok(Box::new(Retransmits::load(slot, start.network()?, start.listening())?)),
};

// SAFETY: integers only, and no padding that is read: any bytes are valid. Generated from the C source.
unsafe impl Plain for types::retransmit_key {}
// SAFETY: as above.
unsafe impl Plain for types::retransmit_counts {}

/// The loaded and attached probe.
pub struct Retransmits<'o> {
    skel: skel::RetransmitsSkel<'o>,
    links: Vec<Link>,
}

impl<'o> Retransmits<'o> {
    /// Loads the programs for the network namespace of this number and attaches them. At `ports` somebody listens there.
    ///
    /// # Errors
    /// The kernel refuses, or lacks a tracepoint.
    pub fn load(slot: Slot<'o>, network: u32, ports: impl IntoIterator<Item = u16>) -> Result<Self> {
        if let Some(missing) = HOOKS.into_iter().find(|hook| !kernel_types::has_hook(hook)) {
            bail!("this kernel has no tracepoint {missing}");
        }
        let mut open = refusal::open(skel::RetransmitsSkelBuilder::default(), slot, "the programs of retransmissions")?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.network = network;
            rodata.tells_error = kernel_types::arguments("tcp_retransmit_skb") > 2;
            rodata.tells_reason = kernel_types::arguments("tcp_send_reset") > 2;
        }
        let skel = refusal::load(open, "the kernel refused the programs of retransmissions")?;
        let mut loaded = Self { skel, links: Vec::new() };
        loaded.listen(ports);
        let attach = |program: &ProgramMut<'_>| {
            program.attach().with_context(|| format!("failed to attach `{}`", program.name().to_string_lossy()))
        };
        let progs = &loaded.skel.progs;
        let programs = [&progs.on_retransmit, &progs.on_send_reset, &progs.on_receive_reset];
        loaded.links = courtesy::urgently(|| programs.into_iter().map(attach).collect::<Result<_>>())?;
        Ok(loaded)
    }

    fn listen(&mut self, ports: impl IntoIterator<Item = u16>) {
        let Some(bss) = self.skel.maps.bss_data.as_deref_mut() else { return };
        mark_listening(&mut bss.listening, ports);
    }

    /// What was counted since the last call, as rows of the slice that ends at `t_ns`.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn rows(&mut self, t_ns: u64) -> Result<Vec<Retransmit>> {
        let counted = kernel_map::drain::<types::retransmit_key, u64>(&self.skel.maps.retransmits)?;
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            bss.own_groups = 0;
        }
        let mut rows: Vec<Retransmit> = counted.iter().map(|(key, count)| row(t_ns, key, *count)).collect();
        rows.sort_by(|a, b| (&a.kind, b.count, a.port, &a.peer).cmp(&(&b.kind, a.count, b.port, &b.peer)));
        Ok(rows)
    }

    fn counts(&self) -> Result<types::retransmit_counts> {
        let mut sum = types::retransmit_counts::default();
        for c in kernel_map::per_cpu::<types::retransmit_counts>(&self.skel.maps.retransmit_counts)? {
            (0..HOOKS.len()).for_each(|hook| sum.hits[hook] += c.hits[hook]);
            sum.kept += c.kept;
            sum.lost += c.lost;
        }
        Ok(sum)
    }
}

impl Probe for Retransmits<'_> {
    fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        let progs = &self.skel.progs;
        let programs = [&progs.on_retransmit, &progs.on_send_reset, &progs.on_receive_reset];
        HOOKS.into_iter().zip(programs.map(|program| program.as_fd())).collect()
    }

    fn runs(&self) -> Result<Vec<(&'static str, u64)>> {
        Ok(HOOKS.into_iter().zip(self.counts()?.hits).collect())
    }

    fn losses(&self) -> Result<Vec<Kept>> {
        let c = self.counts()?;
        Ok(vec![Kept { what: "retransmissions and resets", kept: c.kept, lost: c.lost }])
    }

    fn map_bytes(&self) -> u64 {
        run_stats::map_bytes(self.skel.object(), &[])
    }

    fn detach(&mut self) {
        self.links.clear();
    }
}

impl Collector for Retransmits<'_> {
    /// Leaves out what came since the hooks are on: counters are read from now on.
    fn begin(&mut self, _: &mut Shared<'_>, _: &mut Tables) -> Result<()> {
        self.rows(0).map(drop)
    }

    fn slice(&mut self, _: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        tables.extend(self.rows(end.t_ns)?);
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

fn row(t_ns: u64, key: &types::retransmit_key, count: u64) -> Retransmit {
    let (role, port, peer) = whose(key.role, key.family, key.peer, key.port);
    let reason = key.reason.checked_sub(1).map(|number| kernel_types::reset_reason(number.into()));
    Retransmit {
        t_ns,
        kind: EVENTS.get(usize::from(key.event)).copied().unwrap_or_default().into(),
        state: tcp_state(key.state).into(),
        failed: key.failed != 0,
        role,
        port,
        peer,
        reason: reason.unwrap_or_default(),
        unanswered: key.unanswered != 0,
        count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_named_by_port_or_peer() {
        let mut peer = [0; 16];
        peer[..4].copy_from_slice(&[10, 0, 0, 9]);
        let made = types::retransmit_key { peer, family: 2, port: 5432, state: 2, failed: 1, ..Default::default() };
        let row_of = |key| row(7, &key, 3);
        let told = row_of(made);
        assert_eq!((told.kind.as_str(), told.state.as_str(), told.role.as_str()), ("retransmit", "SYN_SENT", "made"));
        assert_eq!(
            (told.peer.as_str(), told.port, told.failed, told.count, told.t_ns),
            ("10.0.0.9:5432", 0, true, 3, 7)
        );
        let accepted = row_of(types::retransmit_key { event: 2, role: 1, port: 80, state: 1, ..Default::default() });
        let told = (accepted.kind.as_str(), accepted.state.as_str(), accepted.port, accepted.peer.as_str());
        assert_eq!(told, ("reset_received", "ESTABLISHED", 80, ""));
        let others = row_of(types::retransmit_key { role: 3, state: 200, ..Default::default() });
        assert_eq!((others.role.as_str(), others.state.as_str(), others.peer.as_str()), ("others", "", ""));
    }
}
