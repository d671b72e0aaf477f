// SPDX-License-Identifier: Apache-2.0
//! Whether the other end's window, or the target's own send buffer, limits what the target sends, by the kernel's own sums.

use crate::answer::{Measured, Unit};
use crate::case::Case;
use crate::facts::requests::Requests;
use crate::facts::sending::{Endpoint, Sending};
use crate::judgement::clients_wait::{may_wait_for, usual_ns};
use crate::judgement::{by_most, one_of};
use crate::statistics::{ratio, share};
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{percent, seconds};

/// What limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    PeersWindow,
    SendBuffer,
}

impl Limit {
    /// For how long it held, ns.
    fn ns(self, endpoint: &Endpoint) -> f64 {
        match self {
            Self::PeersWindow => endpoint.rwnd_ns,
            Self::SendBuffer => endpoint.sndbuf_ns,
        }
    }

    /// Segments that came in connections that it held for a quarter of their busy time or longer.
    fn segments(self, endpoint: &Endpoint) -> f64 {
        match self {
            Self::PeersWindow => endpoint.rwnd_segments,
            Self::SendBuffer => endpoint.sndbuf_segments,
        }
    }
}

/// An endpoint whose transfers are limited.
pub(crate) struct Limited {
    /// It.
    pub endpoint: Endpoint,
    /// For how long, over all connections, ns.
    pub ns: f64,
    /// Of the time in which the target had something to send there or owed an answer.
    pub part: f64,
    /// Of the requests there, those that came in connections that are limited.
    pub of_requests: f64,
    /// For how long an exchange was, on average, ns; none where none ended.
    pub each_ns: Option<f64>,
}

impl Limited {
    /// For how long what held what the target sends, and where, in words.
    pub(crate) fn told(&self, what: &str) -> String {
        let place = match self.endpoint.accepted {
            true => format!("at {}", self.endpoint.name.trim_start_matches("tcp ")),
            false => format!("to {}", self.endpoint.name),
        };
        format!(
            "{what} held what it sends {place} for {}, {} of the time there",
            seconds(self.ns / 1e9),
            percent(self.part)
        )
    }

    /// Of whom it is, where it is of a few: behind what was seen.
    pub(crate) fn of_few(&self) -> String {
        if self.of_requests < MOST_REQUESTS {
            format!("in connections with {} of the requests there", percent(self.of_requests))
        } else {
            "where no question was seen, while clients wait for answers at other ports".to_string()
        }
    }

    /// What is the same in a finding of either limit.
    pub(crate) fn finding(&self, cause: &str) -> Finding {
        Finding {
            cause: cause.into(),
            subject: Subject {
                socket: Some(self.endpoint.name.clone()).filter(|_| !self.endpoint.accepted),
                ..Subject::default()
            },
            explains: Explains {
                share: self.part,
                of: "the time in which answers were owed or being sent".into(),
                seconds: self.ns / 1e9,
            },
            check:
                "After the change the same diagnosis shows a smaller share of time held, and the transfers are quicker."
                    .into(),
            ..Finding::default()
        }
    }
}

/// What was seen of it.
pub(crate) enum Seen {
    Nothing,
    TooLittle(Limited, Measured),
    TooShort(Limited, Measured),
    /// It limits a few connections; most requests know nothing of it.
    OfFew(Limited),
    /// It limits what is sent while no client waits for it.
    OfItsOwn(Limited),
    Cause(Limited),
}

/// Of the time that clients wait and answers take to be sent: a user feels a quarter.
const MIN_SHARE: f64 = 0.25;

/// Of the window, over all connections.
const MIN_TIME: f64 = 0.05;

/// Of an exchange, on average: what a user feels begins there.
const MIN_EACH_NS: f64 = 5e6;

/// Of the requests: with fewer, a few slow clients are beside many others.
const MOST_REQUESTS: f64 = 0.5;

/// Whatever was seen of it, at the endpoint at which it is a cause, or else at the one with most.
pub(crate) fn look(case: &Case, limit: Limit) -> Seen {
    let Ok(sending) = case.fact::<Sending>() else { return Seen::Nothing };
    let seen = by_most(&sending.endpoints, |e| limit.ns(e)).map(|endpoint| judge(case, limited(case, limit, endpoint)));
    one_of(seen, |seen| matches!(seen, Seen::Cause(_))).unwrap_or(Seen::Nothing)
}

fn judge(case: &Case, limited: Limited) -> Seen {
    let needed = [
        Measured::new(limited.part, MIN_SHARE, Unit::Share),
        Measured::new(limited.ns / 1e9, case.seconds() * MIN_TIME, Unit::Seconds),
    ];
    if let Some(seen) = Measured::farthest(needed) {
        return Seen::TooLittle(limited, seen);
    }
    if let Some(each_ns) = limited.each_ns.filter(|each_ns| *each_ns < MIN_EACH_NS) {
        return Seen::TooShort(limited, Measured::new(each_ns / 1e9, MIN_EACH_NS / 1e9, Unit::Seconds));
    }
    if !limited.endpoint.accepted && !may_wait_for(case, limited.ns, limited.each_ns) {
        return Seen::OfItsOwn(limited);
    }
    if limited.of_requests < MOST_REQUESTS || is_of_few(case, &limited) {
        return Seen::OfFew(limited);
    }
    Seen::Cause(limited)
}

/// Transfers at a time: one or two are somebody's own.
const SEVERAL: f64 = 3.0;

/// Answers, beside which those of one or two are few.
const MANY: f64 = 100.0;

/// Whether what is limited at one port are a few transfers, of which no question was seen, beside many requests at all ports; or ones for
/// which clients wait less than for answers.
fn is_of_few(case: &Case, limited: &Limited) -> bool {
    let is_unasked = limited.endpoint.accepted && limited.each_ns.is_none();
    let Some(requests) = case.fact::<Requests>().ok().filter(|_| is_unasked) else { return false };
    let accepted = requests.endpoints.iter().filter(|e| e.accepted);
    let answered = accepted.map(|e| e.response.count).sum::<f64>() * requests.scale();
    let few = ratio(limited.ns, case.length_ns()) < SEVERAL && answered >= MANY;
    let less = usual_ns(&requests).is_some_and(|usual_ns| limited.ns < usual_ns * requests.scale());
    few || less
}

/// The endpoint at which it is a cause, if at any.
pub(crate) fn cause(case: &Case, limit: Limit) -> Option<Limited> {
    match look(case, limit) {
        Seen::Cause(limited) => Some(limited),
        _ => None,
    }
}

fn limited(case: &Case, limit: Limit, endpoint: &Endpoint) -> Limited {
    let ns = limit.ns(endpoint);
    let requests = case.fact::<Requests>().ok();
    let asked = requests.as_ref().and_then(|requests| requests.of(endpoint.accepted, &endpoint.name));
    let scale = requests.as_ref().map_or(0.0, |requests| requests.scale());
    let (exchanges, waited_ns) =
        asked.map_or((0.0, 0.0), |asked| (asked.response.count * scale, asked.response.sum_ns * scale));
    // What the target asks is sent before it is answered; what it answers is sent after that.
    let all_ns = match endpoint.accepted {
        true => waited_ns + endpoint.busy_ns,
        false => waited_ns.max(endpoint.busy_ns),
    };
    // A request is a segment, or several; the looks miss connections that come and go between two of them.
    let all = endpoint.segments.max(exchanges);
    Limited {
        ns,
        part: share(ns, all_ns),
        of_requests: if all > 0.0 { share(limit.segments(endpoint), all) } else { 1.0 },
        each_ns: (exchanges > 0.0).then(|| ratio(ns, exchanges)),
        endpoint: endpoint.clone(),
    }
}
