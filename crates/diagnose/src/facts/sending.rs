// SPDX-License-Identifier: Apache-2.0
//! What kept bytes in the target's send queues, by port and peer: how many connections stood so on average, which by Little's
//! law is the time that all of them stood, and what the kernel itself added up.

use std::collections::BTreeMap;

use recording::tables;

use super::listening::Listening;
use super::looks::Looks;
use super::requests::Requests;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::{ratio, share};

/// Looks at connections, summed up.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counted {
    open: u64,
    unsent: u64,
    nagle: u64,
    cork: u64,
    rwnd: u64,
    cwnd: u64,
    slow_start: u64,
    restarted: u64,
    paced: u64,
    other: u64,
    on_its_way: u64,
    no_room: u64,
    nodelay: u64,
    own_sndbuf: u64,
    unanswered: u64,
}

/// The sending side of the connections at one port, or to one peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Endpoint {
    /// Clients asked for the connections.
    pub accepted: bool,
    /// Named as in [`Requests`].
    pub name: String,
    counted: Counted,
    nagle_ns: f64,
    window_bytes: f64,
    widest_bytes: f64,
    srtt_ns: f64,
    slow_start_cwnd: f64,
    slow_start_unsent: f64,
    /// The shortest round trip of late, ns; 0 = unknown.
    pub min_rtt_ns: f64,
    /// There was something unsent or unacknowledged, over all connections, ns.
    pub busy_ns: f64,
    /// Of that, held by the other end's window.
    pub rwnd_ns: f64,
    /// Of that, nothing to send while the writer stood before a full send buffer.
    pub sndbuf_ns: f64,
    /// Segments sent again.
    pub retransmits: f64,
    /// Segments with data that were sent, those among them.
    pub segments_out: f64,
    /// Segments with data that came.
    pub segments: f64,
    /// Of those, in connections that the window held for a quarter of their busy time or longer.
    pub rwnd_segments: f64,
    /// Likewise the send buffer.
    pub sndbuf_segments: f64,
    /// What one connection at all looks stands for, ns.
    length_ns: f64,
    looks: f64,
}

impl Endpoint {
    fn add(&mut self, row: &tables::Connection) {
        let c = &mut self.counted;
        for (sum, more) in [
            (&mut c.open, row.open),
            (&mut c.unsent, row.unsent),
            (&mut c.nagle, row.nagle),
            (&mut c.cork, row.cork),
            (&mut c.rwnd, row.rwnd),
            (&mut c.cwnd, row.cwnd),
            (&mut c.slow_start, row.slow_start),
            (&mut c.restarted, row.restarted),
            (&mut c.paced, row.paced),
            (&mut c.other, row.other),
            (&mut c.on_its_way, row.on_its_way),
            (&mut c.no_room, row.no_room),
            (&mut c.nodelay, row.nodelay),
            (&mut c.own_sndbuf, row.own_sndbuf),
            (&mut c.unanswered, row.unanswered),
        ] {
            *sum = sum.saturating_add(more);
        }
        for (sum, more) in [
            (&mut self.nagle_ns, row.nagle_ns),
            (&mut self.window_bytes, row.window_bytes),
            (&mut self.widest_bytes, row.widest_bytes),
            (&mut self.srtt_ns, row.srtt_ns),
            (&mut self.slow_start_cwnd, row.slow_start_cwnd),
            (&mut self.slow_start_unsent, row.slow_start_unsent),
            (&mut self.busy_ns, row.busy_ns),
            (&mut self.rwnd_ns, row.rwnd_ns),
            (&mut self.sndbuf_ns, row.sndbuf_ns),
            (&mut self.retransmits, row.retransmits),
            (&mut self.segments, row.segments),
            (&mut self.segments_out, row.segments_out),
            (&mut self.rwnd_segments, row.rwnd_segments),
            (&mut self.sndbuf_segments, row.sndbuf_segments),
        ] {
            *sum += more as f64;
        }
        self.lower_rtt(row.min_rtt_ns as f64);
    }

    fn lower_rtt(&mut self, rtt_ns: f64) {
        if rtt_ns > 0.0 && (self.min_rtt_ns == 0.0 || rtt_ns < self.min_rtt_ns) {
            self.min_rtt_ns = rtt_ns;
        }
    }

    /// Little's law: so many connections at all looks together, ns.
    fn time_ns(&self, counted: u64) -> f64 {
        ratio(counted as f64, self.looks) * self.length_ns
    }

    /// For how long they were open, over all connections, ns.
    pub fn open_ns(&self) -> f64 {
        self.time_ns(self.counted.open)
    }

    /// Connections found with bytes that Nagle's algorithm held, over all looks.
    pub fn nagle_looks(&self) -> f64 {
        self.counted.nagle as f64
    }

    /// For how long it held bytes, over all connections, ns.
    pub fn nagle_held_ns(&self) -> f64 {
        self.time_ns(self.counted.nagle)
    }

    /// How long ago data had been sent last where it held bytes, on average, ns. A look meets a hold in its middle.
    pub fn nagle_age_ns(&self) -> f64 {
        ratio(self.nagle_ns, self.counted.nagle as f64)
    }

    /// Connections found with bytes that stood unsent for whatever reason, over all looks.
    pub fn unsent_looks(&self) -> f64 {
        self.counted.unsent as f64
    }

    /// For how long bytes stood unsent for whatever reason, over all connections, ns.
    pub fn held_ns(&self) -> f64 {
        self.time_ns(self.counted.unsent)
    }

    /// For how long everything was sent and something unacknowledged, ns.
    pub fn on_its_way_ns(&self) -> f64 {
        self.time_ns(self.counted.on_its_way)
    }

    /// For how long an answer was owed, ns.
    pub fn unanswered_ns(&self) -> f64 {
        self.time_ns(self.counted.unanswered)
    }

    /// Of the connections with something to send, the share of those whose writer found the send buffer full.
    pub fn no_room(&self) -> f64 {
        share(self.counted.no_room as f64, self.sending())
    }

    /// Likewise of those with TCP_NODELAY.
    pub fn nodelay(&self) -> f64 {
        share(self.counted.nodelay as f64, self.sending())
    }

    /// Likewise of those whose send buffer the program has sized.
    pub fn own_sndbuf(&self) -> f64 {
        share(self.counted.own_sndbuf as f64, self.sending())
    }

    /// Their round trips with the time until they were acknowledged, on average, ns.
    pub fn srtt_ns(&self) -> f64 {
        ratio(self.srtt_ns, self.sending())
    }

    /// Where the other end's window held bytes: that window in bytes on average, and as a share of its widest.
    pub fn window(&self) -> (f64, f64) {
        (ratio(self.window_bytes, self.counted.rwnd as f64), ratio(self.window_bytes, self.widest_bytes))
    }

    /// Connections found with bytes that the congestion window held where it begins, or begins again, over all looks.
    pub fn slow_start_looks(&self) -> f64 {
        (self.counted.slow_start + self.counted.restarted) as f64
    }

    /// For how long it held them, over all connections, ns.
    pub fn slow_start_ns(&self) -> f64 {
        self.time_ns(self.counted.slow_start + self.counted.restarted)
    }

    /// Of those, the share in which it begins again.
    pub fn restarts(&self) -> f64 {
        share(self.counted.restarted as f64, self.slow_start_looks())
    }

    /// The congestion window in those, segments, and what stood behind it, bytes, on average.
    pub fn slow_start_window(&self) -> (f64, f64) {
        let each = |sum: f64| ratio(sum, self.slow_start_looks());
        (each(self.slow_start_cwnd), each(self.slow_start_unsent))
    }

    /// Connections found with bytes that the other end's window held, over all looks.
    pub fn rwnd_looks(&self) -> f64 {
        self.counted.rwnd as f64
    }

    /// Connections found with bytes that the program itself had kept back by TCP_CORK, over all looks.
    pub fn cork_looks(&self) -> f64 {
        self.counted.cork as f64
    }

    /// For how long it had, over all connections, ns.
    pub fn corked_ns(&self) -> f64 {
        self.time_ns(self.counted.cork)
    }

    /// What held bytes, in words, with most of them first; empty where none were, or the recording does not say.
    pub fn reasons(&self) -> Vec<(&'static str, f64)> {
        let c = &self.counted;
        let mut all = vec![
            ("Nagle's algorithm", c.nagle),
            ("TCP_CORK", c.cork),
            ("the other end's window", c.rwnd),
            ("the congestion window", c.cwnd),
            ("pacing", c.paced),
            ("something that the looks do not tell (MSG_MORE, the interface, a write that goes on)", c.other),
        ];
        all.retain(|(_, looks)| *looks > 0);
        all.sort_by_key(|(_, looks)| std::cmp::Reverse(*looks));
        all.into_iter().map(|(why, looks)| (why, share(looks as f64, c.unsent as f64))).collect()
    }

    /// Looks at connections with something to send.
    fn sending(&self) -> f64 {
        (self.counted.unsent + self.counted.on_its_way) as f64
    }

    /// Whether acknowledgements came as soon as the network allows: then what is on its way is on the wire.
    fn is_acknowledged_at_once(&self) -> bool {
        self.min_rtt_ns > 0.0 && self.srtt_ns() <= self.min_rtt_ns * AT_ONCE
    }
}

/// Of the shortest round trip: beyond it, the other end put acknowledgements off until it had something to say.
const AT_ONCE: f64 = 2.0;

/// The sending sides of all connections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sending {
    /// Looks at them.
    pub looks: f64,
    /// By port and peer.
    pub endpoints: Vec<Endpoint>,
}

impl Fact for Sending {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<tables::Connection>();
        if rows.is_empty() {
            return Err(Gap::not_recorded("connection", "no connections of the target were seen"));
        }
        let Looks(looks) = *case.fact::<Looks>()?;
        let listening = case.fact::<Listening>()?;
        let mut by: BTreeMap<(bool, u32, &str), Endpoint> = BTreeMap::new();
        for row in rows {
            let accepted = row.is_accepted();
            let name = if accepted { listening.name_at(row.port) } else { row.peer.clone() };
            let fresh = || Endpoint { accepted, name, looks, length_ns: case.length_ns(), ..Endpoint::default() };
            by.entry((accepted, row.port, row.peer.as_str())).or_insert_with(fresh).add(row);
        }
        Ok(Self { looks, endpoints: by.into_values().collect() })
    }
}

/// Of the exchanges of one endpoint: what each of them took on average beyond its response time, s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PerExchange {
    /// Bytes stood in the send queue: of an accepted one after the answer began, of one that the target began before it
    /// was answered.
    pub held: f64,
    /// All was sent and not acknowledged; none where acknowledgements are put off, so that this says nothing of the wire.
    pub wire: Option<f64>,
}

/// Looks from which on an average says something.
const ENOUGH_LOOKS: f64 = 10.0;

/// Connections found in a state, likewise: one that is met once stands for a moment a look's distance long, and may have been as short as
/// a write.
const ENOUGH_SIGHTS: f64 = 3.0;

/// Exchanges, likewise.
const ENOUGH_EXCHANGES: f64 = 20.0;

impl Sending {
    /// The sending side of an endpoint.
    pub fn of(&self, accepted: bool, name: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|e| e.accepted == accepted && e.name == name)
    }

    /// Averages by exchange; none where there are too few of either.
    pub fn per_exchange(&self, requests: &Requests, accepted: bool, name: &str) -> Option<PerExchange> {
        let (sent, asked) = (self.of(accepted, name)?, requests.of(accepted, name)?);
        if self.looks < ENOUGH_LOOKS || asked.response.count < ENOUGH_EXCHANGES {
            return None;
        }
        // What is said in handshakes is on its way as well.
        let all = (asked.response.count + asked.handshake.count) * requests.scale();
        let each = |sights: u64| ratio(sent.time_ns(sights), all) / 1e9;
        let is_chance = |sights: u64| sights > 0 && (sights as f64) < ENOUGH_SIGHTS;
        let (held, wire) = (sent.counted.unsent, sent.counted.on_its_way);
        Some(PerExchange {
            held: if is_chance(held) { 0.0 } else { each(held) },
            wire: (sent.is_acknowledged_at_once() && !is_chance(wire)).then(|| each(wire)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    const TEXT: &str = "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]
        connection t_ns=1 role=accepted port=80 looks=10 open=40 unsent=8 nagle=6 nagle_ns=12e7 other=2 on_its_way=2 nodelay=5 srtt_ns=1e8 min_rtt_ns=2e6
        connection t_ns=2 role=accepted port=80 looks=10 open=40 min_rtt_ns=1e6
        connection t_ns=2 role=made peer=10.0.0.9:1 looks=10 rwnd=4 unsent=4 window_bytes=4000 widest_bytes=16000 on_its_way=5 srtt_ns=9e6 min_rtt_ns=1e6
        exchange_window t_ns=2e9 length_ns=2e9
        exchange role=accepted port=80 stage=response count=40 sum_ns=4e7 nagled=30
        exchange role=made peer=10.0.0.9:1 stage=response count=20 sum_ns=4e7";

    #[test]
    fn how_long_bytes_stood_and_why() {
        let recording = parse(TEXT).unwrap();
        let sending = Case::new(&recording).fact::<Sending>().unwrap();
        let clients = sending.of(true, "tcp 0.0.0.0:80").unwrap();
        assert_eq!((clients.nagle_held_ns(), clients.nagle_age_ns(), clients.held_ns()), (1.2e9, 2e7, 1.6e9));
        assert_eq!((clients.min_rtt_ns, clients.srtt_ns(), clients.nodelay()), (1e6, 1e7, 0.5));
        assert_eq!(
            clients.reasons(),
            [
                ("Nagle's algorithm", 0.75),
                ("something that the looks do not tell (MSG_MORE, the interface, a write that goes on)", 0.25)
            ]
        );
        assert_eq!(sending.of(false, "10.0.0.9:1").unwrap().window(), (1000.0, 0.25));
    }

    #[test]
    fn what_each_exchange_has_of_it() {
        let recording = parse(TEXT).unwrap();
        let case = Case::new(&recording);
        let (sending, requests) = (case.fact::<Sending>().unwrap(), case.fact::<Requests>().unwrap());
        let each = |accepted, name: &str| sending.per_exchange(&requests, accepted, name).unwrap();
        // 80 exchanges in all: they were followed for half of the time.
        assert_eq!(each(true, "tcp 0.0.0.0:80"), PerExchange { held: 0.02, wire: None });
        assert_eq!(each(false, "10.0.0.9:1"), PerExchange { held: 0.02, wire: Some(0.025) });
        let recording = parse(&TEXT.replace("unsent=8", "unsent=2")).unwrap();
        let case = Case::new(&recording);
        let sending = case.fact::<Sending>().unwrap();
        let held = sending.per_exchange(&case.fact::<Requests>().unwrap(), true, "tcp 0.0.0.0:80").unwrap().held;
        assert_eq!(held, 0.0, "met twice in twenty looks, which is chance");
    }
}
