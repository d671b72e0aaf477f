// SPDX-License-Identifier: Apache-2.0
//! How long exchanges took on the target's connections: those that clients began, and those that the target began itself.

mod lengths;
mod numbers;
mod pipelines;
mod streams;
pub(crate) mod weights;

use std::collections::BTreeMap;

use recording::tables;

use super::listening::Listening;
use super::looks::Looks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::{ratio, share};
pub use lengths::{LATE_NS, Lengths, slow_from_ns};

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
    /// Behind TLS, from the hello to what is said to it: no part of any exchange. The first read of such a connection is that of its
    /// hello, and no part of `read_wait`.
    pub handshake: Lengths,
    /// For how long connections stood in the accept queue there, over all of them, ns.
    pub queued_ns: f64,
    /// From the read to the answer; of those that clients began.
    pub service: Lengths,
    /// Of the service, in those that clients sent in parts, until the last of them came.
    pub rest: Lengths,
    /// Exchanges that began.
    pub began: f64,
    /// Closed before an answer.
    pub unanswered: f64,
    /// Of these, those in which whoever owed the answer was the first to close, in order, and not at once.
    pub hung_up: f64,
    /// Connections on which whoever was connected to said something and closed, before the other end had said anything.
    pub dismissed: f64,
    /// Answered ones in which more was asked meanwhile.
    pub more: f64,
    /// Of those that were looked at, the share after whose request another one followed in the same bytes.
    pub pipelined: f64,
    /// Writes to clients beyond the first of an answer.
    pub pushed: f64,
    /// The longest time of each slice without an answer to anybody, while clients waited.
    pub stands: Vec<Stood>,
    /// Writes of the target's that Nagle's algorithm kept back.
    pub nagled: f64,
    /// Time in answers that were late, in the slice with most of it, ns.
    pub most_late_ns: f64,
    /// Answers that followed such pushed writes.
    continued: Written,
    /// Those writes.
    apart: Written,
    /// Late answers that [`PARTS`] further writes followed, and the time before these.
    streams: Written,
}

/// A time without an answer to anybody.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stood {
    /// Its length, ns.
    pub ns: f64,
    /// Requests that waited then.
    pub requests: u64,
    /// End of the slice in which it ended, ns.
    pub t_ns: u64,
}

/// Writes, and how long each came after the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Written {
    count: f64,
    sum_ns: f64,
}

impl Written {
    fn add(&mut self, count: u64, sum_ns: u64, weight: f64) {
        self.count += count as f64 * weight;
        self.sum_ns += sum_ns as f64 * weight;
    }

    fn mean_ns(self) -> f64 {
        ratio(self.sum_ns, self.count)
    }
}

/// By Little's law: as many connections as stood in the accept queue of a port on average, for all of the capture, ns.
fn queued_ns(case: &Case, port: u32) -> f64 {
    let rows = case.recording.rows::<tables::Connection>();
    let looks = case.fact::<Looks>().map_or(0.0, |looks| looks.0);
    let at_port = rows.iter().filter(|row| row.is_accepted() && row.port == port);
    ratio(at_port.map(|row| row.queued as f64).sum::<f64>(), looks) * case.length_ns()
}

/// Of the exchanges at an endpoint: from this share on, several requests are under way on one connection at once, or they are
/// uploads, and their times are those of the whole of it.
const SEVERAL_AT_ONCE: f64 = 0.2;

/// Of the exchanges in which more bytes came: so many further writes are chance, or answers in parts.
const SEVERAL_ANSWERS: f64 = 0.1;

/// Of the connections.
const MOSTLY: f64 = 0.5;

impl Endpoint {
    /// Whether what is counted as one exchange is often more than one request, or a long one.
    pub fn is_mixed(&self) -> bool {
        self.is_pipelined() || share(self.more, self.response.count) >= SEVERAL_AT_ONCE && !self.is_in_parts()
    }

    /// Whether several requests are often written at once: what is counted are batches, each until its first answer.
    pub fn is_pipelined(&self) -> bool {
        self.pipelined >= SEVERAL_AT_ONCE
    }

    /// Whether clients send what they ask in parts, one question at a time: further bytes that came belong to the same one. Of
    /// several questions on one connection, most answers would be writes apart from the first.
    pub fn is_in_parts(&self) -> bool {
        self.rest.count > 0.0 && self.apart.count <= self.rest.count * SEVERAL_ANSWERS
    }
}

/// All exchanges of the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// For how long they were followed, ns.
    pub followed_ns: f64,
    /// In how many slices.
    pub slices: usize,
    /// Length of the capture, ns.
    length_ns: f64,
    /// Those with clients first: the one at which they wait most, then those with most answers.
    pub endpoints: Vec<Endpoint>,
    /// Ports at which the target streams: nobody waits for an answer there.
    pub streams: Vec<Endpoint>,
}

impl Fact for Requests {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<tables::Exchange>();
        if rows.is_empty() {
            return Err(Gap::not_recorded("exchange", "no exchange on a TCP connection of the target was seen"));
        }
        let listening = case.fact::<Listening>()?;
        let mut by: BTreeMap<(bool, u32, &str), Endpoint> = BTreeMap::new();
        let weights = weights::of(case);
        for row in rows {
            let accepted = row.is_accepted();
            let name = || if accepted { listening.name_at(row.port) } else { row.peer.clone() };
            let fresh = || Endpoint { accepted, port: row.port, name: name(), ..Endpoint::default() };
            by.entry((accepted, row.port, row.peer.as_str()))
                .or_insert_with(fresh)
                .add(row, weights.get(&row.t_ns).copied().unwrap_or(1.0));
        }
        let pipelined = pipelines::shares(case);
        by.iter_mut().for_each(|(key, endpoint)| endpoint.pipelined = pipelined.get(key).copied().unwrap_or_default());
        for endpoint in by.values_mut().filter(|endpoint| endpoint.is_behind_tls()) {
            endpoint.read_wait = endpoint.later_read.clone();
        }
        let (streams, mut endpoints): (Vec<_>, Vec<_>) = by.into_values().partition(Endpoint::is_stream);
        endpoints.iter_mut().filter(|e| e.accepted).for_each(|e| e.queued_ns = queued_ns(case, e.port));
        endpoints.sort_by(|a, b| b.accepted.cmp(&a.accepted).then(b.response.count.total_cmp(&a.response.count)));
        let windows = case.recording.rows::<tables::ExchangeWindow>();
        let followed_ns = windows.iter().map(|w| w.length_ns as f64).sum();
        let mut all = Self { followed_ns, slices: windows.len(), length_ns: case.length_ns(), endpoints, streams };
        if let Some(main) = all.longest() {
            all.endpoints[..=main].rotate_right(1);
        }
        Ok(all)
    }
}

impl Endpoint {
    /// Whether its connections begin with handshakes of TLS; a client that says hello where nobody speaks TLS is an error of its own.
    pub fn is_behind_tls(&self) -> bool {
        self.handshake.count > MOSTLY * self.first_read.count
    }

    /// For how long something was owed there: answers, and behind TLS what is said to a hello, without which nothing can be asked, ns.
    pub fn awaited_ns(&self) -> f64 {
        self.response.sum_ns + self.handshake.sum_ns
    }

    /// The same for each answer, ns.
    pub fn awaited_each_ns(&self) -> f64 {
        ratio(self.awaited_ns(), self.response.count)
    }

    fn add(&mut self, row: &tables::Exchange, weight: f64) {
        let add = |lengths: &mut Lengths| {
            lengths.add_weighted(weight, (row.count, row.sum_ns), &row.length_ns, &row.counts);
        };
        match row.stage.as_str() {
            "response" => {
                let mut of_slice = Lengths::default();
                [&mut self.response, &mut of_slice].into_iter().for_each(add);
                self.most_late_ns = self.most_late_ns.max(of_slice.time_from_ns(LATE_NS));
            }
            "first_read" => [&mut self.read_wait, &mut self.first_read].into_iter().for_each(add),
            "read_wait" => [&mut self.read_wait, &mut self.later_read].into_iter().for_each(add),
            "service" => add(&mut self.service),
            "handshake" => add(&mut self.handshake),
            "rest" => add(&mut self.rest),
            _ => {}
        }
        self.began += row.began as f64 * weight;
        self.unanswered += row.unanswered as f64 * weight;
        self.hung_up += row.hung_up as f64 * weight;
        self.dismissed += row.dismissed as f64 * weight;
        self.more += row.more as f64 * weight;
        self.pushed += row.pushed as f64 * weight;
        self.nagled += row.nagled as f64 * weight;
        if row.stood_ns > 0 {
            self.stands.push(Stood { ns: row.stood_ns as f64, requests: row.stood, t_ns: row.t_ns });
        }
        self.continued.add(row.continued, row.continued_ns, weight);
        self.apart.add(row.apart, row.apart_ns, weight);
        self.streams.add(row.streams, row.streams_ns, weight);
    }
}

/// Of the answers of all ports: fewer are none that tell of its clients.
const SOME: f64 = 0.01;

impl Requests {
    /// The endpoint at which clients wait most: at another one, health checks may be more.
    pub fn main(&self) -> Option<&Endpoint> {
        self.endpoints.first().filter(|endpoint| endpoint.accepted && endpoint.response.count > 0.0)
    }

    /// Whether the first requests of connections stood mostly in the accept queue until they were read, and not beside others
    /// that had been accepted.
    pub fn stood_in_queue(&self, endpoint: &Endpoint) -> bool {
        let first_ns = endpoint.first_read.sum_ns * self.scale();
        first_ns > 0.0 && endpoint.queued_ns >= first_ns * MOSTLY_QUEUED
    }

    /// Whether the target streams at one of its ports.
    pub fn streams_at(&self, port: u32) -> bool {
        self.streams.iter().any(|stream| stream.port == port)
    }

    /// The exchanges of an endpoint, by its name.
    pub fn of(&self, accepted: bool, name: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|e| e.accepted == accepted && e.name == name)
    }

    /// The exchanges with clients at a port.
    pub fn at_port(&self, port: u32) -> Option<&Endpoint> {
        self.endpoints.iter().find(|e| e.accepted && e.port == port)
    }

    /// How many of these exchanges were under way at once, on average, by Little's law.
    pub fn at_once(&self, exchanges: &Lengths) -> f64 {
        ratio(exchanges.sum_ns, self.followed_ns)
    }

    /// What one exchange that was followed stands for in the whole capture; where nothing says what was followed, for itself.
    pub fn scale(&self) -> f64 {
        if self.followed_ns > 0.0 { ratio(self.length_ns, self.followed_ns) } else { 1.0 }
    }
}

/// Of the time until the first read: a connection that stands there may not have sent anything yet, and a look meets only a
/// part of them, so that more than half cannot be asked for.
const MOSTLY_QUEUED: f64 = 0.5;

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
        let main = requests.main().unwrap();
        assert_eq!((main.name.as_str(), main.response.count, main.began), ("tcp 0.0.0.0:80", 100.0, 91.0));
        let at = |part| main.response.quantile_ns(part) / 1e6;
        assert_eq!((at(0.5), at(0.98), at(0.99), at(1.0)), (1.0, 1.0, 51.0, 51.0));
        assert_eq!(main.response.shares(), [(1e6, 0.98), (51e6, 1.0)]);
        assert_eq!((main.response.mean_ns(), main.service.count, main.is_mixed()), (2e6, 10.0, false));
        assert!((main.response.share_of_time_from(5e6) - 0.51).abs() < 1e-9);
        assert_eq!((requests.endpoints[1].name.as_str(), requests.endpoints[1].accepted), ("10.0.0.9:1", false));
    }

    #[test]
    fn the_main_endpoint_is_where_clients_wait_most() {
        let order = |orders: u32| {
            let text = format!(
                "exchange role=accepted port=81 stage=response count=2000 sum_ns=2e8 length_ns=[100000] counts=[2000]
                 exchange role=accepted port=80 stage=response count={orders} sum_ns={orders}e8 length_ns=[100000000] counts=[{orders}]
                 exchange role=accepted port=82 stage=response count=100 sum_ns=1e8 length_ns=[1000000] counts=[100]"
            );
            let requests = Case::new(&parse(&text).unwrap()).fact::<Requests>().unwrap();
            assert_eq!(requests.main(), requests.endpoints.first());
            requests.endpoints.iter().map(|endpoint| endpoint.port).collect::<Vec<_>>()
        };
        assert_eq!(order(20), [80, 81, 82], "health checks are a hundred times as many");
        assert_eq!(order(10), [81, 82, 80], "a few that take long tell nothing of the others");
    }

    #[test]
    fn writes_in_one_rhythm_are_a_stream() {
        let streams = |answers: u32, more: &str| {
            let text = format!(
                "exchange role=accepted port=80 stage=response count={answers} sum_ns=2e9 length_ns=[20000000] counts=[{answers}] {more}"
            );
            let requests = Case::new(&parse(&text).unwrap()).fact::<Requests>().unwrap();
            assert_eq!(requests.endpoints.len() + requests.streams.len(), 1);
            requests.streams_at(80)
        };
        let each_20_ms = "continued=96 continued_ns=1920000000 apart=864 apart_ns=17280000000";
        assert!(streams(100, each_20_ms));
        assert!(!streams(100, ""), "one write for each");
        assert!(!streams(200, each_20_ms), "half of them are answers like others");
        let parts = "continued=96 continued_ns=48e8 apart=864 apart_ns=864e8";
        assert!(!streams(100, parts), "parts of a download, 100 ms apart, each answered after 20 ms");
        assert!(!streams(100, "continued=96 continued_ns=1920000000 apart=200 apart_ns=4000000000"), "in three parts");
        // Ten parts a millisecond apart, each time 20 ms after the last: a client asked, and waited for them.
        assert!(!streams(100, "continued=96 continued_ns=1920000000 apart=864 apart_ns=864000000"));
    }

    /// Quick answers, and 40 late ones, of which so many had further parts, so far apart.
    #[test]
    fn the_first_part_of_a_stream_comes_in_its_rhythm() {
        let begins = |late_ms: u32, streams: u32, each_ms: u32, more: &str| {
            let text = format!(
                "exchange role=accepted port=80 stage=response count=100 sum_ns={}e6 length_ns=[300000,{late_ms}000000] counts=[60,40] {more} streams={streams} streams_ns={}e6",
                40 * late_ms,
                2 * streams * each_ms
            );
            Case::new(&parse(&text).unwrap()).fact::<Requests>().unwrap().endpoints[0].begins_streams(4e9)
        };
        assert!(begins(200, 38, 200, "") && begins(200, 30, 190, ""), "the last ones go on behind the end");
        assert!(!begins(200, 24, 200, ""), "too many late answers are whole");
        assert!(!begins(900, 38, 200, ""), "the first keeps clients waiting for longer than the others");
        assert!(!begins(200, 38, 1, ""), "a download: late, and then all at once");
        assert!(!begins(200, 38, 200, "more=40"), "several requests at once on a connection");
        assert!(!begins(5, 0, 0, ""), "nothing is late");
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
