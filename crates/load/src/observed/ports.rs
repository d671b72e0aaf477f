// SPDX-License-Identifier: Apache-2.0
//! How near somebody else's generator came to the end of the local ports that it has towards whom it asks.
//!
//! Each connection to one address needs a port of its own, and whoever closes first keeps it for a minute. A load that is too short to
//! use them all up goes well, and fails when it is repeated, or goes on for longer.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use recording::Recording;
use recording::counters::{Key, local_ports};
use recording::tables::{Counter, Setting};

use crate::opening::{Opening, peers};
use crate::reason::Reason;

/// Of all ports.
const MANY: f64 = 0.5;
/// For how long a port is kept after the end of a connection, s.
const KEPT: f64 = 60.0;

/// That a good part of them was in use, and when none would have been left; none = there were plenty, or as many as such a load takes.
pub(super) fn ports(recording: &Recording, opening: &Opening) -> Option<Reason> {
    let range = most(recording, local_ports::RANGE, "")?;
    let own: BTreeSet<&str> = peers(recording);
    let towards = own.iter().filter_map(|peer| Some((*peer, most(recording, local_ports::USED, peer)?)));
    let (peer, used) = towards.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let kept = most(recording, local_ports::OF_WHICH_TIME_WAIT, peer).unwrap_or(0.0);
    // More than there are: from several addresses. Most of them open: as many as it wants.
    if !(MANY * range..=range).contains(&used) || kept < MANY * used || is_used_again(recording, peer) {
        return None;
    }
    let rate = opening.asked as f64 / (recording.meta.length_ns as f64 / 1e9).max(1.0);
    // In a minute they are free again.
    if rate * KEPT <= range {
        return None;
    }
    let sentence = format!(
        "{used:.0} of the {range:.0} local ports towards {peer} were in use, {kept:.0} of them by connections that had ended less than a \
         minute before: with {rate:.0} connections a second none is left after {:.0} s, nor for the next load that begins soon",
        range / rate
    );
    Some(Reason { code: "ports".into(), sentence })
}

/// Whether a port in TIME_WAIT is taken again after a second.
fn is_used_again(recording: &Recording, peer: &str) -> bool {
    let is_loopback = || peer.parse::<SocketAddr>().is_ok_and(|to| to.ip().to_canonical().is_loopback());
    let reuse = recording.rows::<Setting>().iter().find(|row| row.name == "net.ipv4.tcp_tw_reuse");
    match reuse.map(|row| row.value.trim()) {
        Some("1") => true,
        Some("2") => is_loopback(),
        _ => false,
    }
}

fn most(recording: &Recording, key: Key, entity: &str) -> Option<f64> {
    let is_it = |row: &&Counter| row.source == key.source && row.name == key.name && row.entity == entity;
    recording.rows::<Counter>().iter().filter(is_it).map(|row| row.value).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn said(used: u32, kept: u32, asked: u32, more: &str) -> Option<String> {
        let text = format!(
            "meta length_ns=10e9
             counter source=proc/net/snmp entity=Tcp name=ActiveOpens value=5
             counter t_ns=10e9 source=proc/net/snmp entity=Tcp name=ActiveOpens value={}
             exchange t_ns=1e9 role=made peer=10.0.0.9:80 stage=response count=1
             counter source=local_ports name=range value=28232
             counter t_ns=9e9 source=local_ports entity=10.0.0.9:80 name=used value={used}
             counter t_ns=9e9 source=local_ports entity=10.0.0.9:80 name=time_wait value={kept}
             counter t_ns=9e9 source=local_ports entity=10.0.0.8:80 name=used value=28000\n{more}",
            5 + asked
        );
        let recording = parse(&text).unwrap();
        ports(&recording, &Opening::of(&recording)).map(|reason| reason.sentence)
    }

    #[test]
    fn a_load_that_fails_if_it_goes_on() {
        let text = said(20_000, 19_900, 20_000, "").unwrap();
        assert!(text.contains("20000 of the 28232") && text.contains("none is left after 14 s"), "{text}");
    }

    #[test]
    fn a_load_that_has_enough_of_them() {
        assert_eq!(said(9_000, 8_900, 9_000, ""), None, "few");
        assert_eq!(said(20_000, 100, 20_000, ""), None, "open connections");
        assert_eq!(said(40_000, 39_000, 40_000, ""), None, "from two addresses");
        assert_eq!(said(20_000, 19_900, 4_000, ""), None, "they are free again before it comes to their end");
        let reuse = "setting area=net name=net.ipv4.tcp_tw_reuse value=\"1\"\n";
        assert_eq!(said(20_000, 19_900, 20_000, reuse), None);
        let only_loopback = "setting area=net name=net.ipv4.tcp_tw_reuse value=\"2\"\n";
        assert!(said(20_000, 19_900, 20_000, only_loopback).is_some(), "another host's");
    }
}
