// SPDX-License-Identifier: Apache-2.0
//! Whether what the target sends waits for the congestion windows of connections that begin, or begin again after a pause.

use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::facts::requests::Requests;
use crate::facts::sending::{Endpoint, Sending};
use crate::judgement::clients_wait::{is_of_answers, may_wait_for};
use crate::judgement::{by_most, one_of};
use crate::statistics::{ratio, share};

/// Of the time in which answers are owed or being sent: a user feels a quarter.
const MIN_SHARE: f64 = 0.25;

/// Of the window, over all connections.
const MIN_TIME: f64 = 0.05;

/// Of an exchange, on average: what a user feels begins there.
const MIN_EACH_NS: f64 = 5e6;

/// A shorter round trip nobody counts: what stands before a window then waits for a CPU.
const MIN_RTT_NS: f64 = 1e6;

/// Looks that found bytes held so. The time is told from them, to a half; that it was so, each of them shows.
const MIN_LOOKS: f64 = 5.0;

/// An endpoint at which it holds bytes.
pub(crate) struct Held {
    /// It.
    pub endpoint: Endpoint,
    /// Over all connections, ns.
    pub ns: f64,
    /// Of the time in which the target had something to send there or owed an answer.
    pub part: f64,
    /// Of each exchange, ns; none where none ended.
    pub each_ns: Option<f64>,
}

/// What was seen of it.
pub(crate) enum Seen {
    Nothing,
    TooLittle(Held, Measured),
    /// A round trip takes so little that nobody feels some of them.
    ShortWay(Held, Measured),
    TooShort(Held, Measured),
    /// No client waits for what is sent meanwhile.
    OfItsOwn(Held),
    /// At one port, of which clients wait for much longer at others.
    OfFew(Held),
    Cause(Held),
}

/// Whatever was seen of it, at the endpoint at which it is a cause, or else at the one with most.
pub(crate) fn look(case: &Case) -> Seen {
    let Ok(sending) = case.fact::<Sending>() else { return Seen::Nothing };
    let seen = by_most(&sending.endpoints, Endpoint::slow_start_ns).map(|endpoint| judge(case, held(case, endpoint)));
    one_of(seen, |seen| matches!(seen, Seen::Cause(_))).unwrap_or(Seen::Nothing)
}

fn judge(case: &Case, held: Held) -> Seen {
    let endpoint = &held.endpoint;
    let needed = [
        Measured::new(held.part, MIN_SHARE, Unit::Share),
        Measured::new(held.ns / 1e9, case.seconds() * MIN_TIME, Unit::Seconds),
        Measured::new(endpoint.slow_start_looks(), MIN_LOOKS, Unit::Looks),
    ];
    if let Some(seen) = Measured::farthest(needed) {
        return Seen::TooLittle(held, seen);
    }
    if endpoint.min_rtt_ns < MIN_RTT_NS {
        let rtt = Measured::new(endpoint.min_rtt_ns / 1e9, MIN_RTT_NS / 1e9, Unit::Seconds);
        return Seen::ShortWay(held, rtt);
    }
    if !endpoint.accepted && !may_wait_for(case, held.ns, held.each_ns) {
        return Seen::OfItsOwn(held);
    }
    let is_of_answers = case.fact::<Requests>().map_or(true, |requests| is_of_answers(&requests, held.ns));
    if endpoint.accepted && !is_of_answers {
        return Seen::OfFew(held);
    }
    match held.each_ns.filter(|each_ns| *each_ns < MIN_EACH_NS) {
        Some(each_ns) => Seen::TooShort(held, Measured::new(each_ns / 1e9, MIN_EACH_NS / 1e9, Unit::Seconds)),
        None => Seen::Cause(held),
    }
}

/// Where it is a cause, if it is one.
pub(crate) fn cause(case: &Case) -> Option<Held> {
    match look(case) {
        Seen::Cause(held) => Some(held),
        _ => None,
    }
}

fn held(case: &Case, endpoint: &Endpoint) -> Held {
    let ns = endpoint.slow_start_ns();
    let requests = case.fact::<Requests>().ok();
    let asked = requests.as_ref().and_then(|requests| requests.of(endpoint.accepted, &endpoint.name));
    let scale = requests.as_ref().map_or(0.0, |requests| requests.scale());
    let (exchanges, waited_ns) =
        asked.map_or((0.0, 0.0), |asked| (asked.response.count * scale, asked.response.sum_ns * scale));
    // The kernel's own sums miss connections that live shorter than from look to look, which these do.
    let sent_ns = endpoint.held_ns() + endpoint.on_its_way_ns();
    // What the target asks is sent before it is answered; what it answers is sent after that.
    let all_ns = if endpoint.accepted { waited_ns + sent_ns } else { waited_ns.max(sent_ns) };
    Held {
        ns,
        part: share(ns, all_ns),
        each_ns: (exchanges > 0.0).then(|| ratio(ns, exchanges)),
        endpoint: endpoint.clone(),
    }
}
