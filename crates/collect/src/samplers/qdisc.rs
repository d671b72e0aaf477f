// SPDX-License-Identifier: Apache-2.0
//! Queues of network interfaces: what stands in them, what left them and what they dropped (`tc -s qdisc`).
//!
//! `/proc/net/dev` says what an interface carries; whether more wanted to leave is said here, whoever sets the limit: the line,
//! a driver, or a shaper of somebody's. An interface without a queue (loopback, most virtual ones) has no row.

use std::collections::BTreeMap;
use std::io;

use recording::counters::{Key, qdisc};

use super::{Readings, Sampler, Scope};
use crate::netlink::{Netlink, attribute, attributes, long, word};

const RTM_NEWLINK: u16 = 16; // include/uapi/linux/rtnetlink.h
const RTM_GETLINK: u16 = 18;
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
/// sizeof(struct ifinfomsg) and sizeof(struct tcmsg).
const LINK: usize = 16;
const QDISC: usize = 20;
const IFLA_IFNAME: u16 = 3;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TC_H_ROOT: u32 = u32::MAX;

/// The queues of one network namespace.
pub struct Qdisc {
    netlink: io::Result<Netlink>,
    /// By index; asked for again when there is a new one.
    names: BTreeMap<u32, String>,
}

/// At the root of one interface: that of all below it together.
#[derive(Debug, PartialEq)]
struct Root {
    interface: u32,
    values: Vec<(Key, f64)>,
}

pub fn sampler(scope: &Scope) -> Qdisc {
    Qdisc { netlink: Netlink::of(&scope.proc, &scope.network(), libc::NETLINK_ROUTE), names: BTreeMap::new() }
}

impl Sampler for Qdisc {
    fn name(&self) -> &'static str {
        qdisc::SOURCE
    }

    fn needs(&self) -> &'static str {
        "a kernel with traffic control (CONFIG_NET_SCHED); without it the queues of network interfaces are unknown"
    }

    fn sample(&mut self, _: &Scope, out: &mut Readings) -> Result<(), String> {
        let failed = |error: &io::Error| format!("cannot ask for queues ({error})");
        let netlink = self.netlink.as_mut().map_err(|error| failed(error))?;
        let mut roots = Vec::new();
        let each = &mut |message: &[u8]| roots.extend(root(message));
        netlink.dump((RTM_GETQDISC, RTM_NEWQDISC), &[0; QDISC], each).map_err(|error| failed(&error))?;
        if roots.iter().any(|root| !self.names.contains_key(&root.interface)) {
            let names = &mut self.names;
            let each = &mut |message: &[u8]| names.extend(name(message));
            netlink.dump((RTM_GETLINK, RTM_NEWLINK), &[0; LINK], each).map_err(|error| failed(&error))?;
        }
        for root in roots {
            let Some(name) = self.names.get(&root.interface) else { continue };
            root.values.into_iter().for_each(|(key, value)| out.put(key, name, value));
        }
        Ok(())
    }
}

/// struct tcmsg and its attributes, if it is at a root and keeps a queue.
fn root(message: &[u8]) -> Option<Root> {
    let (interface, parent) = (word(message, 4)?, word(message, 12)?);
    let told = message.get(QDISC..)?;
    let kind = attribute(told, TCA_KIND)?;
    if parent != TC_H_ROOT || kind.starts_with(b"noqueue") {
        return None;
    }
    let mut values = if kind.starts_with(b"netem") { vec![(qdisc::EMULATES, 1.0)] } else { Vec::new() };
    for (kind, body) in attributes(attribute(told, TCA_STATS2)?) {
        let at = |place: usize| word(body, place * 4).map(f64::from);
        match kind {
            // struct gnet_stats_basic.
            TCA_STATS_BASIC => values.push((qdisc::SENT_BYTES, long(body, 0)? as f64)),
            // struct gnet_stats_queue: packets, bytes, drops, requeues, overlimits.
            TCA_STATS_QUEUE => {
                let fields = [(qdisc::BACKLOG_BYTES, 1), (qdisc::DROPS, 2), (qdisc::OVERLIMITS, 4)];
                values.extend(fields.into_iter().filter_map(|(key, place)| Some((key, at(place)?))));
            }
            _ => {}
        }
    }
    Some(Root { interface, values })
}

/// struct ifinfomsg and its attributes.
fn name(message: &[u8]) -> Option<(u32, String)> {
    let name = attribute(message.get(LINK..)?, IFLA_IFNAME)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Some((word(message, 4)?, String::from_utf8_lossy(name).into_owned()))
}

/// For fuzzing: all that is read of one answer.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode(bytes: &[u8]) {
    let _ = crate::netlink::parse(bytes, RTM_NEWQDISC, &mut |message| {
        let _ = (root(message), name(message));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute_of(kind: u16, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + body.len()).unwrap();
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), body, &padding].concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn message(parent: u32, kind: &str) -> Vec<u8> {
        let basic = attribute_of(TCA_STATS_BASIC, &words(&[90_000, 0, 60]));
        let queue = attribute_of(TCA_STATS_QUEUE, &words(&[12, 18_000, 3, 1, 77]));
        let stats = attribute_of(TCA_STATS2, &[basic, queue].concat());
        [words(&[0, 4, 1, parent, 0]), attribute_of(TCA_KIND, kind.as_bytes()), stats].concat()
    }

    #[test]
    fn the_queue_at_the_root() {
        let root = root(&message(TC_H_ROOT, "tbf\0")).unwrap();
        let of = |key: Key| root.values.iter().find(|(of, _)| *of == key).map(|(_, value)| *value);
        assert_eq!(
            (root.interface, of(qdisc::SENT_BYTES), of(qdisc::BACKLOG_BYTES)),
            (4, Some(90_000.0), Some(18_000.0))
        );
        assert_eq!((of(qdisc::DROPS), of(qdisc::OVERLIMITS), of(qdisc::EMULATES)), (Some(3.0), Some(77.0), None));
        let netem = super::root(&message(TC_H_ROOT, "netem\0")).unwrap();
        assert!(netem.values.contains(&(qdisc::EMULATES, 1.0)));
    }

    #[test]
    fn below_a_root_without_a_queue_or_torn() {
        assert_eq!(root(&message(0x10001, "pfifo\0")), None);
        assert_eq!(root(&message(TC_H_ROOT, "noqueue\0")), None);
        let whole = message(TC_H_ROOT, "tbf\0");
        (0..whole.len()).for_each(|length| drop(root(&whole[..length])));
        decode(&whole);
    }

    #[test]
    fn an_interface_has_a_name() {
        let message = [words(&[0, 7, 0, 0]), attribute_of(IFLA_IFNAME, b"eth0\0")].concat();
        assert_eq!(name(&message), Some((7, "eth0".to_string())));
    }
}
