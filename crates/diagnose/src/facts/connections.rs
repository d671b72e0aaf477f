// SPDX-License-Identifier: Apache-2.0
//! In how many of the target's connections an answer was owed, on average: by the target to its clients, and to the target
//! by those that it asked. By Little's law that is the time that all requests took together.

use recording::tables;

use super::looks::Looks;
use super::requests::{Endpoint, LATE_NS, Requests};
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::{ratio, share};

/// Connections of one kind, averages over all looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// Open ones.
    pub open: f64,
    /// Beside these, asked for and not answered yet.
    pub opening: f64,
    /// With bytes that came and were not read.
    pub unread: f64,
    /// With bytes written that could not be sent yet.
    pub unsent: f64,
    /// In which an answer was owed.
    pub unanswered: f64,
    /// The most of those that a look found.
    pub most_unanswered: f64,
    /// In which it had been owed for 10 ms or longer.
    pub late: f64,
    /// For how long it had been owed in those, on average, ns.
    pub late_ns: f64,
    /// Of those that are late, the ones in whose read a thread of the target stands; only of connections that it made.
    pub awaited: f64,
    /// Accepted ones in which the last question was answered, and in whose read a thread of the target stands.
    pub kept: f64,
    /// Of the late ones that were accepted, those in which what came lies unread.
    pub late_unread: f64,
    /// Accepted ones, in the whole window, in which more came where an answer was late and none went out.
    pub went_on: f64,
    /// With everything sent and something not acknowledged yet.
    pub on_its_way: f64,
    /// In the accept queue; beside the open ones.
    pub queued: f64,
}

/// What looks at the target's connections found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connections {
    /// How many looks.
    pub looks: f64,
    /// Those that clients asked for.
    pub accepted: Held,
    /// Those that the target asked for itself.
    pub made: Held,
    /// The latter by peer, those with most answers owed first.
    pub peers: Vec<(String, Held)>,
}

impl Fact for Connections {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<tables::Connection>();
        if rows.is_empty() {
            return Err(Gap::not_recorded("connection", "no connections of the target were seen"));
        }
        let Looks(looks) = *case.fact::<Looks>()?;
        let mut all = Self { looks, ..Self::default() };
        let requests = case.fact::<Requests>().ok();
        for row in rows {
            if row.is_accepted() {
                let streams = requests.as_ref().is_some_and(|requests| requests.streams_at(row.port));
                match streams {
                    true => all.accepted.add(&owing_nothing(row)),
                    false => all.accepted.add(row),
                }
                continue;
            }
            all.made.add(row);
            let at = all.peers.iter().position(|(peer, _)| *peer == row.peer).unwrap_or_else(|| {
                all.peers.push((row.peer.clone(), Held::default()));
                all.peers.len() - 1
            });
            all.peers[at].1.add(row);
        }
        let peers = all.peers.iter_mut().map(|(_, held)| held);
        peers.chain([&mut all.accepted, &mut all.made]).for_each(|held| held.divide(looks));
        if let Some(requests) = requests {
            all.accepted.told_by(&requests, case.length_ns());
        }
        all.peers.sort_by(|a, b| b.1.unanswered.total_cmp(&a.1.unanswered));
        Ok(all)
    }
}

/// Open ones at one of the target's own ports, on average.
pub fn open_at(case: &Case, port: u32) -> f64 {
    let looks = case.fact::<Connections>().map_or(0.0, |connections| connections.looks);
    let at_port =
        case.recording.rows::<tables::Connection>().iter().filter(|row| row.is_accepted() && row.port == port);
    ratio(at_port.map(|row| row.open as f64).sum(), looks)
}

/// The same of a port at which the target streams: whoever sends something there waits for no answer.
fn owing_nothing(row: &tables::Connection) -> tables::Connection {
    tables::Connection { unanswered: 0, late: 0, late_ns: 0, late_unread: 0, ..row.clone() }
}

/// Requests that were late at a time, by the exchanges: with fewer, looks may have missed them by chance.
const ENOUGH: f64 = 0.5;

/// Of these, the ones that looks met: with fewer, looks do not see them.
const MET: f64 = 0.5;

impl Held {
    /// Those with a request that somebody had in hand: it was read, or should have been long ago. One that came a moment ago
    /// and was not read keeps no thread.
    pub fn in_hand(&self) -> f64 {
        (self.unanswered - self.unread + self.late).clamp(0.0, self.unanswered)
    }

    /// A thread that reads on while another one answers looks like one that waits for its client, to whom nothing is owed. Where most
    /// of what was late was not met, the exchanges tell how much that was, by Little's law: each was read, and ended with an answer.
    fn told_by(&mut self, requests: &Requests, window_ns: f64) {
        let told = |e: &&Endpoint| e.accepted && !e.is_mixed() && !e.is_in_parts() && !e.is_mostly_news();
        let sum =
            |of: fn(&Endpoint) -> f64| requests.endpoints.iter().filter(told).map(of).sum::<f64>() * requests.scale();
        let (number, time_ns) = (sum(|e| e.service.count_from(LATE_NS)), sum(|e| e.service.time_from_ns(LATE_NS)));
        let late = ratio(time_ns - number * LATE_NS, window_ns);
        if late < ENOUGH || self.late >= late * MET {
            return;
        }
        self.late = late;
        self.late_ns = (ratio(time_ns, number) + LATE_NS) / 2.0;
        self.unanswered = self.unanswered.max(ratio(sum(|e| e.service.sum_ns), window_ns));
        self.most_unanswered = self.most_unanswered.max(self.unanswered);
    }

    fn add(&mut self, row: &tables::Connection) {
        self.open += row.open as f64;
        self.opening += row.opening as f64;
        self.unread += row.unread as f64;
        self.unsent += row.unsent as f64;
        self.unanswered += row.unanswered as f64;
        self.most_unanswered = self.most_unanswered.max(row.most_unanswered as f64);
        self.late += row.late as f64;
        self.late_ns += row.late_ns as f64;
        self.awaited += row.awaited as f64;
        self.kept += row.kept as f64;
        self.late_unread += row.late_unread as f64;
        self.went_on += row.went_on as f64;
        self.on_its_way += row.on_its_way as f64;
        self.queued += row.queued as f64;
    }

    /// Sums to averages.
    fn divide(&mut self, looks: f64) {
        self.late_ns = ratio(self.late_ns, self.late);
        let Self {
            open,
            opening,
            unread,
            unsent,
            unanswered,
            late,
            awaited,
            kept,
            late_unread,
            on_its_way,
            queued,
            ..
        } = self;
        for sum in [open, opening, unread, unsent, unanswered, late, awaited, kept, late_unread, on_its_way, queued] {
            *sum = ratio(*sum, looks);
        }
    }
}

/// Looks from which on an average says something.
const MIN_LOOKS: f64 = 10.0;

impl Connections {
    /// Whether requests of clients can be seen at all: there are accepted TCP connections, and enough looks at them.
    pub fn tells(&self) -> bool {
        self.looks >= MIN_LOOKS && self.accepted.open > 0.0
    }

    /// Share of the answers owed to the target by `peer`, or by all, in connections in which the question itself could not
    /// be sent yet.
    pub fn held_back(&self, peer: &str) -> f64 {
        let of_peer = self.peers.iter().find(|(name, _)| name == peer).map(|(_, held)| held);
        let held = of_peer.unwrap_or(&self.made);
        share(held.unsent, held.unanswered.max(held.unsent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn averages_over_all_looks() {
        let recording = parse(
            "connection t_ns=1 role=accepted port=80 looks=10 open=40 unanswered=20 late=10 late_ns=5e8
             connection t_ns=1 role=made peer=10.0.0.9:1 looks=10 open=20 unanswered=8 unsent=4
             connection t_ns=2 role=accepted port=80 looks=10 open=20 unread=5
             connection t_ns=2 role=made peer=10.0.0.8:1 looks=10 open=10 unanswered=10",
        )
        .unwrap();
        let c = Case::new(&recording).fact::<Connections>().unwrap();
        assert_eq!((c.looks, c.accepted.open, c.accepted.unanswered, c.accepted.late), (20.0, 3.0, 1.0, 0.5));
        assert_eq!((c.accepted.late_ns, c.accepted.unread, c.made.unanswered), (5e7, 0.25, 0.9));
        assert_eq!((c.peers[0].0.as_str(), c.held_back("10.0.0.9:1"), c.tells()), ("10.0.0.8:1", 0.5, true));
    }

    #[test]
    fn what_nobody_has_read_yet_keeps_no_thread() {
        let held = |unread: f64, late: f64| Held { unanswered: 8.0, unread, late, ..Held::default() }.in_hand();
        assert_eq!((held(7.5, 0.0), held(7.5, 7.0), held(0.0, 8.0)), (0.5, 7.5, 8.0));
    }

    /// Ten answers a second of 110 ms each, of connections that a thread goes on reading meanwhile.
    #[test]
    fn a_reader_that_hands_on_hides_what_is_owed() {
        let held = |found: &str, written: u32| {
            let text = format!(
                "meta length_ns=2e9
                 connection t_ns=2e9 role=accepted port=80 looks=20 open=80 {found}
                 exchange_window t_ns=2e9 length_ns=2e9
                 exchange t_ns=2e9 role=accepted port=80 stage=response count=20 sum_ns=40e8 length_ns=[200000000] counts=[20] apart={written}
                 exchange t_ns=2e9 role=accepted port=80 stage=service count=20 sum_ns=22e8 length_ns=[110000000] counts=[20]"
            );
            Case::new(&parse(&text).unwrap()).fact::<Connections>().unwrap().accepted.clone()
        };
        let blind = held("", 20);
        assert_eq!((blind.late, blind.late_ns, blind.unanswered), (1.0, 6e7, 1.1));
        let news = held("", 60);
        assert_eq!((news.late, news.unanswered), (0.0, 0.0), "what looks like an answer is not one");
        let seen = held("unanswered=18 late=15 late_ns=9e8", 20);
        assert_eq!((seen.late, seen.unanswered), (0.75, 0.9));
    }

    #[test]
    fn nothing_seen() {
        let recording = parse("").unwrap();
        assert!(Case::new(&recording).fact::<Connections>().is_err());
    }
}
