// SPDX-License-Identifier: Apache-2.0
//! How long exchanges took on the target's connections: those that clients began, and those that the target began itself.

use std::collections::BTreeMap;

use recording::tables;

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::{ratio, share};

/// Lengths of time, each known within 3 %.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lengths {
    /// How many.
    pub count: f64,
    /// Added up, ns.
    pub sum_ns: f64,
    bins: BTreeMap<u64, u64>,
}

impl Lengths {
    pub(super) fn add(&mut self, count: u64, sum_ns: u64, length_ns: &[u64], counts: &[u64]) {
        self.count += count as f64;
        self.sum_ns += sum_ns as f64;
        for (length_ns, count) in length_ns.iter().zip(counts) {
            let bin = self.bins.entry(*length_ns).or_default();
            *bin = bin.saturating_add(*count);
        }
    }

    /// The length that a share of all are not longer than, ns; 0 where there is none.
    pub fn quantile_ns(&self, part: f64) -> f64 {
        let all: f64 = self.bins.values().map(|count| *count as f64).sum();
        let mut below = 0.0;
        for (length_ns, count) in &self.bins {
            below += *count as f64;
            if below >= all * part {
                return *length_ns as f64;
            }
        }
        0.0
    }

    /// Lengths that were met, ascending, ns, and the share of all that are not longer.
    pub fn shares(&self) -> Vec<(f64, f64)> {
        let all: f64 = self.bins.values().map(|count| *count as f64).sum();
        let mut below = 0.0;
        let mut share_of = |(length_ns, count): (&u64, &u64)| {
            below += *count as f64;
            (*length_ns as f64, share(below, all))
        };
        self.bins.iter().map(&mut share_of).collect()
    }

    /// Lengths, ns, and how many are of each.
    pub fn counts(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.bins.iter().map(|(length_ns, count)| (*length_ns as f64, *count as f64))
    }

    /// On average, ns.
    pub fn mean_ns(&self) -> f64 {
        ratio(self.sum_ns, self.count)
    }

    /// How many are of this length or longer.
    pub fn count_from(&self, from_ns: f64) -> f64 {
        self.bins.iter().filter(|(length_ns, _)| **length_ns as f64 >= from_ns).map(|(_, count)| *count as f64).sum()
    }

    /// Time in those that are not much longer than half of them, ns: a few long polls take more than all other answers.
    fn usual_ns(&self) -> f64 {
        let most_ns = much_longer_ns(self.quantile_ns(0.5));
        let usual = self.bins.iter().filter(|(length_ns, _)| **length_ns as f64 <= most_ns);
        usual.map(|(length_ns, count)| *length_ns as f64 * *count as f64).sum()
    }

    /// Share of all their time that is in those of this length or longer.
    pub fn share_of_time_from(&self, from_ns: f64) -> f64 {
        let time = |(length_ns, count): (&u64, &u64)| *length_ns as f64 * *count as f64;
        let all: f64 = self.bins.iter().map(time).sum();
        share(self.bins.iter().filter(|(length_ns, _)| **length_ns as f64 >= from_ns).map(time).sum(), all)
    }
}

/// An answer that takes so long is late, as the looks at connections count them, ns.
pub const LATE_NS: f64 = 10e6;

/// The length from which on answers are slow beside the others, ns: late, and much longer than half of them.
pub fn slow_from_ns(half_ns: f64) -> f64 {
    LATE_NS.max(much_longer_ns(half_ns))
}

/// The length from which on answers are much longer than half of them, ns: such are another kind.
fn much_longer_ns(half_ns: f64) -> f64 {
    half_ns * 10.0
}

/// One port at which clients ask, or one peer that the target asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Endpoint {
    /// Clients ask.
    pub accepted: bool,
    /// Own port where clients ask.
    pub port: u32,
    /// The listening socket, `tcp 0.0.0.0:8080`; else the peer's address.
    pub name: String,
    /// From the first byte of what was asked to the first byte of the answer.
    pub response: Lengths,
    /// What had arrived until it was read.
    pub read_wait: Lengths,
    /// Of that, in the first exchange of each connection that clients made: it may have stood in the accept queue.
    pub first_read: Lengths,
    /// Of it, in all others.
    pub later_read: Lengths,
    /// For how long connections stood in the accept queue there, over all of them, ns.
    pub queued_ns: f64,
    /// From the read to the answer; of those that clients began.
    pub service: Lengths,
    /// Exchanges that began.
    pub began: f64,
    /// Closed before an answer.
    pub unanswered: f64,
    /// Answered ones in which more was asked meanwhile.
    pub more: f64,
    /// Writes to clients beyond the first of an answer.
    pub pushed: f64,
    /// Writes of the target's that Nagle's algorithm kept back.
    pub nagled: f64,
}

/// By Little's law: as many connections as stood in the accept queue of a port on average, for all of the capture, ns.
fn queued_ns(case: &Case, port: u32) -> f64 {
    let rows = case.recording.rows::<tables::Connection>();
    let looks: BTreeMap<u64, u64> = rows.iter().map(|row| (row.t_ns, row.looks)).collect();
    let looks: f64 = looks.values().map(|looks| *looks as f64).sum();
    let at_port = rows.iter().filter(|row| row.role == "accepted" && row.port == port);
    ratio(at_port.map(|row| row.queued as f64).sum::<f64>(), looks) * case.length_ns()
}

/// Of the exchanges at an endpoint: from this share on, several requests are under way on one connection at once, or they are
/// uploads, and their times are those of the whole of it.
const SEVERAL_AT_ONCE: f64 = 0.2;

impl Endpoint {
    /// Whether what is counted as one exchange is often more than one request, or a long one.
    pub fn is_mixed(&self) -> bool {
        share(self.more, self.response.count) >= SEVERAL_AT_ONCE
    }
}

/// All exchanges of the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// For how long they were followed, ns.
    pub followed_ns: f64,
    /// Length of the capture, ns.
    length_ns: f64,
    /// Those with clients first, the busiest first.
    pub endpoints: Vec<Endpoint>,
}

impl Fact for Requests {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<tables::Exchange>();
        if rows.is_empty() {
            return Err(Gap::not_recorded("exchange", "no exchange on a TCP connection of the target was seen"));
        }
        let mut by: BTreeMap<(bool, u32, &str), Endpoint> = BTreeMap::new();
        for row in rows {
            let accepted = row.role == "accepted";
            let name = || if accepted { listener(case, row.port) } else { row.peer.clone() };
            let fresh = || Endpoint { accepted, port: row.port, name: name(), ..Endpoint::default() };
            by.entry((accepted, row.port, row.peer.as_str())).or_insert_with(fresh).add(row);
        }
        let mut endpoints: Vec<Endpoint> = by.into_values().collect();
        endpoints.iter_mut().filter(|e| e.accepted).for_each(|e| e.queued_ns = queued_ns(case, e.port));
        endpoints.sort_by(|a, b| b.accepted.cmp(&a.accepted).then(b.response.count.total_cmp(&a.response.count)));
        let windows = case.recording.rows::<tables::ExchangeWindow>();
        let followed_ns = windows.iter().map(|w| w.length_ns as f64).sum();
        Ok(Self { followed_ns, length_ns: case.length_ns(), endpoints })
    }
}

impl Endpoint {
    fn add(&mut self, row: &tables::Exchange) {
        let add = |lengths: &mut Lengths| lengths.add(row.count, row.sum_ns, &row.length_ns, &row.counts);
        match row.stage.as_str() {
            "response" => add(&mut self.response),
            "first_read" => [&mut self.read_wait, &mut self.first_read].into_iter().for_each(add),
            "read_wait" => [&mut self.read_wait, &mut self.later_read].into_iter().for_each(add),
            "service" => add(&mut self.service),
            _ => {}
        }
        self.began += row.began as f64;
        self.unanswered += row.unanswered as f64;
        self.more += row.more as f64;
        self.pushed += row.pushed as f64;
        self.nagled += row.nagled as f64;
    }
}

impl Requests {
    /// The endpoint at which clients ask most.
    pub fn busiest(&self) -> Option<&Endpoint> {
        self.endpoints.first().filter(|endpoint| endpoint.accepted && endpoint.response.count > 0.0)
    }
}

impl Requests {
    /// Whether the first requests of connections stood mostly in the accept queue until they were read, and not beside others
    /// that had been accepted.
    pub fn stood_in_queue(&self, endpoint: &Endpoint) -> bool {
        let first_ns = endpoint.first_read.sum_ns * self.scale();
        first_ns > 0.0 && endpoint.queued_ns >= first_ns * MOSTLY_QUEUED
    }

    /// The exchanges of an endpoint, by its name.
    pub fn of(&self, accepted: bool, name: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|e| e.accepted == accepted && e.name == name)
    }

    /// What one exchange that was followed stands for in the whole capture.
    pub fn scale(&self) -> f64 {
        ratio(self.length_ns, self.followed_ns)
    }

    /// How long the clients waited for usual answers, ns; none where too few of them got any, or what they ask is mixed.
    pub fn clients_ns(&self) -> Option<f64> {
        let clients = || self.endpoints.iter().filter(|e| e.accepted && !e.is_mixed());
        let answered: f64 = clients().map(|e| e.response.count).sum();
        (answered >= ENOUGH).then(|| clients().map(|e| e.response.usual_ns()).sum())
    }
}

/// Of the time until the first read: a connection that stands there may not have sent anything yet, and a look meets only a
/// part of them, so that more than half cannot be asked for.
const MOSTLY_QUEUED: f64 = 0.5;

/// Exchanges from which on sums say something.
const ENOUGH: f64 = 20.0;

/// Of those that the target began, so many may still be without an answer at the end: with more of them it holds something
/// open, such as a subscription, and its time is in none that ended.
const OPEN: f64 = 0.2;

impl Requests {
    /// How long the target waited for answers of `peer`, for each second that its own clients waited for usual ones of theirs;
    /// none where either cannot be told. Beyond 1, it asks several at once, or not for its clients.
    pub fn part_of_peer(&self, peer: &str) -> Option<f64> {
        let (clients_ns, asked) = (self.clients_ns()?, self.of(false, peer)?);
        let open = asked.began - asked.response.count - asked.unanswered;
        // What several of its requests share a connection for, is less time than they wait.
        let told = !asked.is_mixed() && asked.response.count >= ENOUGH && open <= asked.began * OPEN;
        told.then(|| ratio(asked.response.sum_ns, clients_ns))
    }
}

/// The target's listening socket at a port, as it was found.
pub(super) fn listener(case: &Case, port: u32) -> String {
    let listen = &case.recording.meta.target.listen;
    let at_port = |socket: &&String| socket.starts_with("tcp ") && socket.ends_with(&format!(":{port}"));
    listen.iter().find(at_port).cloned().unwrap_or_else(|| format!("tcp port {port}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn slices_add_up_and_quantiles_are_lengths_that_were_met() {
        let recording = parse(
            "meta target.listen=[\"tcp 0.0.0.0:80\"]
             exchange t_ns=1 role=accepted port=80 stage=response count=90 sum_ns=90e6 length_ns=[1000000] counts=[90] began=91
             exchange t_ns=2 role=accepted port=80 stage=response count=10 sum_ns=110e6 length_ns=[1000000,51000000] counts=[8,2] more=1
             exchange t_ns=2 role=accepted port=80 stage=service count=10 sum_ns=10e6 length_ns=[1000000] counts=[10]
             exchange t_ns=2 role=made peer=10.0.0.9:1 stage=response count=500 sum_ns=5e6 length_ns=[10000] counts=[500]",
        )
        .unwrap();
        let requests = Case::new(&recording).fact::<Requests>().unwrap();
        let busiest = requests.busiest().unwrap();
        assert_eq!((busiest.name.as_str(), busiest.response.count, busiest.began), ("tcp 0.0.0.0:80", 100.0, 91.0));
        let at = |part| busiest.response.quantile_ns(part) / 1e6;
        assert_eq!((at(0.5), at(0.98), at(0.99), at(1.0)), (1.0, 1.0, 51.0, 51.0));
        assert_eq!(busiest.response.shares(), [(1e6, 0.98), (51e6, 1.0)]);
        assert_eq!((busiest.response.mean_ns(), busiest.service.count, busiest.is_mixed()), (2e6, 10.0, false));
        assert!((busiest.response.share_of_time_from(5e6) - 0.51).abs() < 1e-9);
        assert_eq!((requests.endpoints[1].name.as_str(), requests.endpoints[1].accepted), ("10.0.0.9:1", false));
    }

    #[test]
    fn how_much_of_the_answers_is_somebody_elses() {
        let part = |more: &str| {
            let text = format!(
                "exchange role=accepted port=80 stage=response count=100 sum_ns=100e6 length_ns=[1000000] counts=[100] began=100
                 exchange role=made peer=10.0.0.9:1 stage=response count=90 sum_ns=80e6 length_ns=[888888] counts=[90] {more}"
            );
            Case::new(&parse(&text).unwrap()).fact::<Requests>().unwrap().part_of_peer("10.0.0.9:1")
        };
        assert_eq!((part("began=90"), part("began=95")), (Some(0.8), Some(0.8)));
        let polls =
            "\nexchange role=accepted port=80 stage=response count=4 sum_ns=120e9 length_ns=[30000000000] counts=[4]";
        assert_eq!(part(&format!("began=90{polls}")), Some(0.8), "long polls wait for nobody");
        assert_eq!(part("began=200"), None, "it holds many open");
        assert_eq!(part("began=90 more=30"), None, "several share a connection");
    }

    #[test]
    fn who_stood_in_the_accept_queue() {
        let stood = |queued: u32| {
            let text = format!(
                "meta length_ns=4e9
                 exchange_window t_ns=2e9 length_ns=2e9
                 connection t_ns=4e9 role=accepted port=80 looks=40 queued={queued}
                 exchange role=accepted port=80 stage=response count=20 sum_ns=4e9 length_ns=[200000000] counts=[20]
                 exchange role=accepted port=80 stage=first_read count=10 sum_ns=1e9 length_ns=[100000000] counts=[10]
                 exchange role=accepted port=80 stage=read_wait count=10 sum_ns=1e7 length_ns=[1000000] counts=[10]"
            );
            let requests = Case::new(&parse(&text).unwrap()).fact::<Requests>().unwrap();
            let e = &requests.endpoints[0];
            assert_eq!((e.read_wait.count, e.first_read.count, e.later_read.count), (20.0, 10.0, 10.0));
            requests.stood_in_queue(e)
        };
        // First reads took 2 s in the whole capture.
        assert_eq!((stood(20), stood(9), stood(0)), (true, false, false));
    }

    #[test]
    fn nothing_seen() {
        assert!(Case::new(&parse("").unwrap()).fact::<Requests>().is_err());
    }
}
