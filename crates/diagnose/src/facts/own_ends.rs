// SPDX-License-Identifier: Apache-2.0
//! Which connections of a network namespace are the target's own, by their ports and peers: tables that are kept for the whole
//! namespace name both.

use std::collections::BTreeSet;

use super::connections::Connections;
use super::listening::Listening;
use crate::answer::Gap;
use crate::case::{Case, Fact};

/// Stands for peers beyond those that are told apart.
pub const OTHERS: &str = "others";

/// Its ports, and whom it asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnEnds {
    ports: Vec<u32>,
    datagrams: Vec<u32>,
    peers: BTreeSet<String>,
    /// It asks more than these, whose names are not told.
    pub has_others: bool,
}

impl Fact for OwnEnds {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let listening = case.fact::<Listening>()?;
        let connections = case.fact::<Connections>().ok();
        let peers: BTreeSet<String> = connections.iter().flat_map(|c| &c.peers).map(|(name, _)| name.clone()).collect();
        let datagrams = listening.all().filter(|socket| socket.is_udp).filter_map(|socket| socket.port).collect();
        let has_others = peers.contains(OTHERS);
        Ok(Self { ports: listening.tcp_ports(), datagrams, peers, has_others })
    }
}

impl OwnEnds {
    /// Whether clients make connections to the target at a port.
    pub fn has_port(&self, port: u32) -> bool {
        self.ports.contains(&port)
    }

    /// Whether it takes datagrams there.
    pub fn takes_datagrams_at(&self, port: u32) -> bool {
        self.datagrams.contains(&port)
    }

    /// Whether the target asks a peer.
    pub fn asks(&self, peer: &str) -> bool {
        self.peers.contains(peer)
    }

    /// Whether a connection to a peer is the target's, or a client's to the target, from this host.
    pub fn has_peer(&self, peer: &str) -> bool {
        self.asks(peer) || self.is_client(peer)
    }

    fn is_client(&self, peer: &str) -> bool {
        let Some((address, port)) = peer.rsplit_once(':') else { return false };
        let is_here = address.starts_with("127.") || address == "[::1]";
        is_here && port.parse().is_ok_and(|port| self.has_port(port))
    }
}
