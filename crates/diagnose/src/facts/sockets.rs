// SPDX-License-Identifier: Apache-2.0
//! The target's TCP sockets by listener and by whom it asked: how many, in which state, with which options, and what the kernel
//! counted of them.

use std::collections::BTreeMap;

use recording::tables::{Connection, Retransmit};

use super::listeners::{Listener, Listeners};
use super::listening::Listening;
use super::looks::Looks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::{ratio, share};

/// The sockets at one port, or towards one peer. Numbers of sockets are averages over all looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Clients asked for them.
    pub accepted: bool,
    /// The listening socket, `tcp 0.0.0.0:80`, or the peer's address.
    pub name: String,
    /// Open ones.
    pub open: f64,
    /// With something to read.
    pub unread: f64,
    /// With something that could not be sent yet.
    pub unsent: f64,
    /// In which an answer was owed.
    pub unanswered: f64,
    /// Of those with something to send, share with TCP_NODELAY; none = none was met with something to send.
    pub nodelay: Option<f64>,
    /// Likewise with SO_KEEPALIVE.
    pub keepalive: Option<f64>,
    /// The shortest round trip of late, ns; none = unknown.
    pub min_rtt_ns: Option<f64>,
    /// Until what was sent is acknowledged, on average, ns; none = unknown.
    pub srtt_ns: Option<f64>,
    /// Segments sent again.
    pub retransmits: f64,
    /// Connections that were reset, by either end.
    pub resets: f64,
    /// Of the time with something to send, share held by the other end's window.
    pub rwnd: f64,
    /// Likewise by a full send buffer.
    pub sndbuf: f64,
    /// The accept queue.
    pub listener: Option<Listener>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sockets {
    /// Those of listeners first, those with most open connections first.
    pub groups: Vec<Group>,
}

/// By whom a socket is told: role, own port, peer.
type Key<'r> = (bool, u32, &'r str);

impl Fact for Sockets {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<Connection>();
        if rows.is_empty() {
            return Err(Gap::not_recorded("connection", "no connections of the target were seen"));
        }
        let mut sums: BTreeMap<Key<'_>, Sums> = BTreeMap::new();
        for row in rows {
            sums.entry((row.is_accepted(), row.port, &row.peer)).or_default().add(row);
        }
        let Looks(looks) = *case.fact::<Looks>()?;
        for row in case.recording.rows::<Retransmit>() {
            let key = (row.is_accepted(), row.port, row.peer.as_str());
            if let Some(sum) = sums.get_mut(&key).filter(|_| row.is_accepted() || row.is_made()) {
                let counted = if row.kind == "retransmit" { &mut sum.told } else { &mut sum.resets };
                *counted += row.count as f64;
            }
        }
        let (listeners, listening) = (case.fact::<Listeners>().ok(), case.fact::<Listening>()?);
        let group = |((accepted, port, peer), sum): (Key<'_>, Sums)| {
            let name = if accepted { listening.name_at(port) } else { peer.to_string() };
            let listener =
                listeners.as_ref().filter(|_| accepted).and_then(|all| all.all.iter().find(|l| l.name == name));
            Group { accepted, listener: listener.cloned(), name, ..sum.averages(looks) }
        };
        let mut groups: Vec<Group> = sums.into_iter().map(group).collect();
        groups.sort_by(|a, b| b.accepted.cmp(&a.accepted).then(b.open.total_cmp(&a.open)));
        Ok(Self { groups })
    }
}

/// Sums over all looks.
#[derive(Default)]
struct Sums {
    open: f64,
    unread: f64,
    unsent: f64,
    unanswered: f64,
    sending: f64,
    nodelay: f64,
    keepalive: f64,
    srtt_ns: f64,
    min_rtt_ns: f64,
    retransmits: f64,
    /// Segments sent again and resets as the kernel told of them one by one, those of connections between two looks too.
    told: f64,
    resets: f64,
    busy_ns: f64,
    rwnd_ns: f64,
    sndbuf_ns: f64,
}

impl Sums {
    fn add(&mut self, row: &Connection) {
        for (sum, more) in [
            (&mut self.open, row.open),
            (&mut self.unread, row.unread),
            (&mut self.unsent, row.unsent),
            (&mut self.unanswered, row.unanswered),
            (&mut self.nodelay, row.nodelay),
            (&mut self.keepalive, row.keepalive),
            (&mut self.srtt_ns, row.srtt_ns),
            (&mut self.retransmits, row.retransmits),
            (&mut self.busy_ns, row.busy_ns),
            (&mut self.rwnd_ns, row.rwnd_ns),
            (&mut self.sndbuf_ns, row.sndbuf_ns),
        ] {
            *sum += more as f64;
        }
        self.sending += row.unsent as f64 + row.on_its_way as f64;
        let rtt_ns = row.min_rtt_ns as f64;
        if rtt_ns > 0.0 && (self.min_rtt_ns == 0.0 || rtt_ns < self.min_rtt_ns) {
            self.min_rtt_ns = rtt_ns;
        }
    }

    fn averages(&self, looks: f64) -> Group {
        let of_sending = |sum: f64| (self.sending > 0.0).then(|| share(sum, self.sending));
        Group {
            open: ratio(self.open, looks),
            unread: ratio(self.unread, looks),
            unsent: ratio(self.unsent, looks),
            unanswered: ratio(self.unanswered, looks),
            nodelay: of_sending(self.nodelay),
            keepalive: of_sending(self.keepalive),
            min_rtt_ns: Some(self.min_rtt_ns).filter(|ns| *ns > 0.0),
            srtt_ns: Some(ratio(self.srtt_ns, self.sending)).filter(|ns| *ns > 0.0),
            retransmits: self.retransmits.max(self.told),
            resets: self.resets,
            rwnd: share(self.rwnd_ns, self.busy_ns),
            sndbuf: share(self.sndbuf_ns, self.busy_ns),
            ..Group::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn by_listener_and_peer() {
        let text = "meta length_ns=2e9 target.listen=[\"tcp 0.0.0.0:80\"]
            counter source=proc/net/listeners entity=\"tcp 0.0.0.0:80\" name=accept_queue value=3
            connection t_ns=1e9 role=accepted port=80 looks=10 open=40 unsent=5 on_its_way=5 nodelay=5 srtt_ns=2e7 min_rtt_ns=1e6 retransmits=1 busy_ns=100 rwnd_ns=30
            connection t_ns=2e9 role=accepted port=80 looks=10 open=20 min_rtt_ns=2e6
            connection t_ns=2e9 role=made peer=10.0.0.9:1 looks=10 open=30 unanswered=20
            retransmit t_ns=1e9 kind=retransmit role=accepted port=80 count=4
            retransmit t_ns=1e9 kind=reset_sent role=made peer=10.0.0.9:1 count=2
            retransmit t_ns=1e9 kind=reset_sent role=none port=80 count=9";
        let recording = parse(text).unwrap();
        let sockets = Case::new(&recording).fact::<Sockets>().unwrap();
        let [clients, store] = &sockets.groups[..] else { panic!("{sockets:?}") };
        assert_eq!(
            (clients.name.as_str(), clients.open, clients.retransmits, clients.resets),
            ("tcp 0.0.0.0:80", 3.0, 4.0, 0.0)
        );
        assert_eq!((clients.nodelay, clients.keepalive, clients.rwnd), (Some(0.5), Some(0.0), 0.3));
        assert_eq!((clients.min_rtt_ns, clients.srtt_ns), (Some(1e6), Some(2e6)));
        assert_eq!(clients.listener.as_ref().map(|l| l.queue), Some(3.0));
        assert_eq!((store.open, store.unanswered, store.resets, store.nodelay), (1.5, 1.0, 2.0, None));
    }
}
