// SPDX-License-Identifier: Apache-2.0
//! The stages of an exchange on average, by port and peer: before it is accepted, unread, in service, held in a send queue, on
//! the wire. Averages add up; percentiles do not.

use super::requests::{Endpoint, Requests};
use super::sending::Sending;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::ratio;

/// Where an exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Its connection stands in the accept queue.
    Accept,
    /// Written, and not sent yet.
    Held,
    /// Sent, and not acknowledged yet.
    Wire,
    /// At the peer that was asked.
    Peer,
    /// There or on the way: which, cannot be told.
    PeerOrWire,
    /// It has arrived on an accepted connection, and nobody has read it.
    ReadWait,
    /// It was read, and the client has not sent all of it.
    Rest,
    /// It was read, and the answer has not begun.
    Service,
}

/// The stages at one endpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfEndpoint {
    /// Clients ask.
    pub accepted: bool,
    /// Named as in [`Requests`].
    pub name: String,
    /// Answered ones.
    pub exchanges: f64,
    /// Stages in the order of time with what each exchange spends there, s. One that cannot be told is not among them.
    pub stages: Vec<(Stage, f64)>,
}

impl OfEndpoint {
    /// All stages together, s.
    pub fn seconds(&self) -> f64 {
        self.stages.iter().map(|(_, seconds)| seconds).sum()
    }

    /// What an exchange spends in one of them, s; none where it cannot be told.
    pub fn of(&self, stage: Stage) -> Option<f64> {
        self.stages.iter().find(|(at, _)| *at == stage).map(|(_, seconds)| *seconds)
    }
}

/// Of all endpoints at which anything was answered, those with clients first, the main one before all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stages {
    /// Them.
    pub endpoints: Vec<OfEndpoint>,
}

impl Fact for Stages {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let requests = case.fact::<Requests>()?;
        let sending = case.fact::<Sending>().ok();
        let of = |endpoint: &Endpoint| {
            let each = sending.as_ref().and_then(|s| s.per_exchange(&requests, endpoint.accepted, &endpoint.name));
            let (held, wire) = (each.map(|each| each.held), each.and_then(|each| each.wire));
            let stages = match endpoint.accepted {
                true => asked(endpoint, accept(&requests, endpoint), held, wire),
                false => made(endpoint, held, wire),
            };
            let (name, exchanges) = (endpoint.name.clone(), endpoint.response.count);
            OfEndpoint { accepted: endpoint.accepted, name, exchanges, stages }
        };
        let answered = requests.endpoints.iter().filter(|endpoint| endpoint.response.count > 0.0);
        Ok(Self { endpoints: answered.map(of).collect() })
    }
}

/// Seconds of an exchange in which its connection stood in the accept queue; none where some stood there beside others that
/// had been accepted.
fn accept(requests: &Requests, endpoint: &Endpoint) -> Option<f64> {
    if requests.stood_in_queue(endpoint) {
        return Some(ratio(endpoint.first_read.sum_ns, endpoint.response.count) / 1e9);
    }
    (endpoint.queued_ns == 0.0).then_some(0.0)
}

/// A client sends at once: while its connection stands in the accept queue, what it asks lies unread, and both are one time.
fn asked(endpoint: &Endpoint, accept: Option<f64>, held: Option<f64>, wire: Option<f64>) -> Vec<(Stage, f64)> {
    let (unread, service) = (endpoint.read_wait.mean_ns() / 1e9, endpoint.service.mean_ns() / 1e9);
    // Behind TLS it was the hello that lay unread, before the first exchange.
    let is_part = !endpoint.is_behind_tls();
    let accept = accept.map(|accept| if is_part { accept.min(unread) } else { accept });
    let rest = endpoint.is_in_parts().then(|| ratio(endpoint.rest.sum_ns, endpoint.response.count) / 1e9);
    let unread = unread - accept.filter(|_| is_part).unwrap_or(0.0);
    let stages = [
        (Stage::Accept, accept),
        (Stage::ReadWait, Some(unread)),
        (Stage::Rest, rest),
        (Stage::Service, Some((service - rest.unwrap_or(0.0)).max(0.0))),
        (Stage::Held, held),
        (Stage::Wire, wire),
    ];
    stages.into_iter().filter_map(|(stage, seconds)| Some((stage, seconds?))).collect()
}

/// What the target asks is held and on the wire before it is answered: both are a part of the time until the answer.
fn made(endpoint: &Endpoint, held: Option<f64>, wire: Option<f64>) -> Vec<(Stage, f64)> {
    let response = endpoint.response.mean_ns() / 1e9;
    let held = held.map(|held| held.min(response));
    let rest = response - held.unwrap_or(0.0);
    let wire = wire.map(|wire| wire.min(rest));
    let peer = if wire.is_some() { Stage::Peer } else { Stage::PeerOrWire };
    let stages = [
        (Stage::Held, held),
        (Stage::Wire, wire),
        (peer, Some(rest - wire.unwrap_or(0.0))),
        (Stage::ReadWait, Some(ratio(endpoint.read_wait.sum_ns, endpoint.read_wait.count) / 1e9)),
    ];
    stages.into_iter().filter_map(|(stage, seconds)| Some((stage, seconds?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    const TEXT: &str = "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]
        exchange_window t_ns=4e9 length_ns=4e9
        connection t_ns=4e9 role=accepted port=80 looks=40 queued=4 unsent=20 on_its_way=10 srtt_ns=3e7 min_rtt_ns=1e6
        connection t_ns=4e9 role=made peer=10.0.0.9:1 looks=40 unsent=10 on_its_way=10 srtt_ns=2e8 min_rtt_ns=1e6
        exchange role=accepted port=80 stage=response count=100 sum_ns=3e9
        exchange role=accepted port=80 stage=read_wait count=90 sum_ns=6e8
        exchange role=accepted port=80 stage=first_read count=10 sum_ns=4e8
        exchange role=accepted port=80 stage=service count=100 sum_ns=2e9
        exchange role=made peer=10.0.0.9:1 stage=response count=50 sum_ns=2e9
        exchange role=made peer=10.0.0.9:1 stage=read_wait count=50 sum_ns=5e7";

    #[test]
    fn stages_of_both_kinds() {
        let recording = parse(TEXT).unwrap();
        let stages = Case::new(&recording).fact::<Stages>().unwrap();
        let [asked, made] = &stages.endpoints[..] else { panic!("{stages:?}") };
        let ms = |of: &OfEndpoint| of.stages.iter().map(|(s, at)| (*s, (at * 1e4).round() / 10.0)).collect::<Vec<_>>();
        // One in ten looks one stood in the accept queue, for 4 s: 4 ms for each of 100, in which it lay unread.
        assert_eq!(
            ms(asked),
            [
                (Stage::Accept, 4.0),
                (Stage::ReadWait, 6.0),
                (Stage::Service, 20.0),
                (Stage::Held, 20.0),
                (Stage::Wire, 10.0)
            ]
        );
        // Its acknowledgements are put off, so the wire is not told from the peer.
        assert_eq!(ms(made), [(Stage::Held, 20.0), (Stage::PeerOrWire, 20.0), (Stage::ReadWait, 1.0)]);
        assert!((made.seconds() - 0.041).abs() < 1e-9 && made.of(Stage::Wire).is_none());
    }

    #[test]
    fn behind_tls_the_hello_stood_in_the_queue() {
        let handshakes = "\n exchange role=accepted port=80 stage=handshake count=10 sum_ns=5e8";
        let recording = parse(&format!("{TEXT}{handshakes}")).unwrap();
        let stages = Case::new(&recording).fact::<Stages>().unwrap();
        let ms = |stage| (stages.endpoints[0].of(stage).unwrap() * 1e4).round() / 10.0;
        assert_eq!((ms(Stage::Accept), ms(Stage::ReadWait)), (4.0, 6.7), "6e8 over 90 reads, of which none is a hello");
    }

    #[test]
    fn queues_beside_connections_that_were_accepted_tell_nothing() {
        let accept = |queued: &str| {
            let recording = parse(&TEXT.replace("queued=4", queued)).unwrap();
            Case::new(&recording).fact::<Stages>().unwrap().endpoints[0].of(Stage::Accept)
        };
        assert_eq!((accept("queued=1"), accept("queued=0")), (None, Some(0.0)));
    }
}
