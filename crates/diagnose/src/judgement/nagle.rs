// SPDX-License-Identifier: Apache-2.0
//! Whether Nagle's algorithm, together with an acknowledgement that the other end puts off, holds what the target writes.

use recording::counters::netstat;

use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::facts::counters::Counters;
use crate::facts::requests::Requests;
use crate::facts::sending::{Endpoint, Sending};
use crate::judgement::{by_most, clients_wait, one_of};
use crate::statistics::{ratio, share};

/// An endpoint at which bytes were held.
pub(crate) struct Held {
    /// It.
    pub endpoint: Endpoint,
    /// For how long, over all connections, ns.
    pub ns: f64,
    /// Of the time that whoever asks there waits.
    pub part: f64,
    /// Exchanges there, scaled to the window; 0 = none were followed.
    pub exchanges: f64,
    /// How long one hold takes, ns.
    pub length_ns: f64,
    /// Writes that met it, scaled to the window; none where the kernel has no hook for them.
    pub writes: Option<f64>,
    /// Acknowledgements that the timer sent, in the target's network namespace; of the other end, where that is local.
    pub delayed_acks: Option<f64>,
}

/// What was seen of it.
pub(crate) enum Seen {
    /// No connection with bytes that it held.
    Nothing,
    /// The recording does not say what held bytes.
    NotRecorded,
    /// Less than makes a cause.
    TooLittle(Held, Measured),
    /// For too short a time each: the other end does not put its acknowledgement off.
    TooShort(Held),
    /// Segments were lost meanwhile, or clients wait for something else.
    Explained(Held, &'static str),
    /// It is a cause.
    Cause(Held),
}

/// Connections, over all looks: of fewer, each may be chance.
const MIN_LOOKS: f64 = 5.0;

/// Of the time that whoever asks waits: a user feels a quarter.
const MIN_SHARE: f64 = 0.25;

/// The same where one exchange in a hundred and more is held: those are the slowest ones, whatever the others take.
const MIN_SHARE_OF_FEW: f64 = 0.1;
const ONE_IN_A_HUNDRED: f64 = 0.01;
const SEVERAL: f64 = 10.0;

/// Of the window, over all connections.
const MIN_TIME: f64 = 0.02;

/// Half of the shortest timer that puts an acknowledgement off (40 ms on Linux): measured lengths scatter.
const MIN_LENGTH_NS: f64 = 20e6;

/// Of the shortest round trip: what takes hardly longer is an acknowledgement that nobody put off.
const MIN_ROUND_TRIPS: f64 = 2.0;

/// Of the holds: with so many segments that are sent again, losses hold them.
const MAX_RETRANSMITS: f64 = 0.25;

/// A look meets a hold in its middle, on average.
const WHOLE: f64 = 2.0;

/// Of the time that looks tell, what the writes must explain at least: counts and lengths scatter.
const MIN_COUNTED: f64 = 1.0 / 3.0;

/// Whatever was seen of it, at the endpoint at which it is a cause, or else at the one with most.
pub(crate) fn look(case: &Case) -> Seen {
    let Ok(sending) = case.fact::<Sending>() else { return Seen::Nothing };
    let held_ns = |e: &Endpoint| if e.nagle_looks() > 0.0 { e.nagle_held_ns() } else { 0.0 };
    let seen = by_most(&sending.endpoints, held_ns).map(|endpoint| judge(case, held(case, endpoint)));
    one_of(seen, |seen| matches!(seen, Seen::Cause(_))).unwrap_or_else(|| {
        let untold = |e: &Endpoint| e.unsent_looks() >= MIN_LOOKS && e.reasons().is_empty();
        if sending.endpoints.iter().any(untold) { Seen::NotRecorded } else { Seen::Nothing }
    })
}

/// The endpoint at which it is a cause, if at any.
pub(crate) fn cause(case: &Case) -> Option<Held> {
    match look(case) {
        Seen::Cause(held) => Some(held),
        _ => None,
    }
}

fn judge(case: &Case, held: Held) -> Seen {
    let endpoint = &held.endpoint;
    let holds = ratio(held.ns, held.length_ns);
    let are_felt = holds >= SEVERAL && holds >= held.exchanges * ONE_IN_A_HUNDRED && held.exchanges > 0.0;
    let needed = [
        Measured::new(endpoint.nagle_looks(), MIN_LOOKS, Unit::Looks),
        Measured::new(held.part, if are_felt { MIN_SHARE_OF_FEW } else { MIN_SHARE }, Unit::Share),
        Measured::new(held.ns / 1e9, case.seconds() * MIN_TIME, Unit::Seconds),
    ];
    if let Some(seen) = Measured::farthest(needed) {
        return Seen::TooLittle(held, seen);
    }
    if held.length_ns < MIN_LENGTH_NS.max(endpoint.min_rtt_ns * MIN_ROUND_TRIPS) {
        return Seen::TooShort(held);
    }
    if endpoint.retransmits >= holds * MAX_RETRANSMITS {
        return Seen::Explained(held, "segments were lost and sent again meanwhile");
    }
    if held.writes.is_some_and(|writes| writes < holds * MIN_COUNTED) {
        return Seen::Explained(held, "hardly any write began while it held back");
    }
    if !is_of_answers(case, &held) {
        return Seen::Explained(held, "its clients hardly wait for that");
    }
    Seen::Cause(held)
}

fn held(case: &Case, endpoint: &Endpoint) -> Held {
    let requests = case.fact::<Requests>().ok();
    let asked = requests.as_ref().and_then(|requests| requests.of(endpoint.accepted, &endpoint.name));
    let scale = requests.as_ref().map_or(0.0, |requests| requests.scale());
    let ns = endpoint.nagle_held_ns();
    // What the target asks is answered after it was sent; what it answers is sent after that.
    let after_ns = if endpoint.accepted { endpoint.held_ns() } else { 0.0 };
    let waited_ns = match asked.filter(|asked| asked.response.count > 0.0) {
        Some(asked) => asked.response.sum_ns * scale + after_ns,
        None => endpoint.unanswered_ns() + after_ns,
    };
    Held {
        ns,
        part: share(ns, waited_ns.max(ns)),
        exchanges: asked.map_or(0.0, |asked| asked.response.count * scale),
        length_ns: endpoint.nagle_age_ns() * WHOLE,
        writes: asked.map(|asked| asked.nagled * scale).filter(|writes| *writes > 0.0),
        delayed_acks: delayed_acks(case),
        endpoint: endpoint.clone(),
    }
}

/// Acknowledgements that a timer of this kernel sent, in the target's network namespace; none = not recorded.
pub(crate) fn delayed_acks(case: &Case) -> Option<f64> {
    case.fact::<Counters>().ok()?.grew(netstat::DELAYED_ACKS)
}

/// Whether it is a part of what the target's clients wait for. A target that has none waits itself.
fn is_of_answers(case: &Case, held: &Held) -> bool {
    let Ok(requests) = case.fact::<Requests>() else { return true };
    clients_wait::is_of_answers(&requests, held.ns)
}
