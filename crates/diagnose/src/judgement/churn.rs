// SPDX-License-Identifier: Apache-2.0
//! A connection for each request: whether clients make one, and what taking and closing them costs.

use recording::counters::sockstat;

use crate::case::Case;
use crate::facts::calls::Calls;
use crate::facts::counters::Counters;
use crate::facts::handshakes::Handshakes;
use crate::facts::limits::Limits;
use crate::facts::profile::Profile;
use crate::facts::requests::{Endpoint, Requests};
use crate::statistics::share;
use crate::wording::count;

/// In the window: fewer are clients that come and go.
const MANY: f64 = 100.0;

/// Of the requests, the first ones on their connections: with fewer, most come on connections that are kept.
const MOSTLY_FIRST: f64 = 0.7;

/// Calls that take and close connections; of a service that does so for each request, most are of these.
const TAKES: &[&str] = &["accept", "accept4", "close", "shutdown"];

/// Calls that make and close them. (Those that set one up are small beside these.)
const MAKES: &[&str] = &["socket", "connect", "close", "shutdown"];

/// Of what it costs to make connections and to close them, connect(2) alone: it is the dearest of them.
const MUCH_IS_CONNECT: f64 = 0.2;

/// Whose connections live for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Side {
    /// Clients make one for each request.
    #[default]
    Clients,
    /// The target makes one for each question of its own.
    Own,
}

/// Connections and what they cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Churn {
    /// Whose.
    pub side: Side,
    /// Connections on which a client's first request was seen (those of the namespace's counter may be another's); or that were
    /// made from there, no more than the target asked questions.
    pub taken: f64,
    /// Requests, or questions, in the window.
    pub requests: f64,
    /// There are about as many connections as requests.
    pub one_each: bool,
    /// Share of the target's CPU time in calls that take, or make, and close connections.
    pub part: f64,
    /// The same in CPUs' worth of work.
    pub cores: f64,
    /// Sockets in TIME_WAIT at most.
    pub time_wait: f64,
}

impl Churn {
    /// Whether so many connections come and go that they are worth a word.
    pub fn is_churn(&self) -> bool {
        self.one_each && self.taken >= MANY
    }

    /// They, for so many requests, in words.
    pub fn words(&self) -> String {
        let (taken, requests) = (count(self.taken), count(self.requests));
        match self.side {
            Side::Clients => format!("{taken} connections were taken for {requests} requests"),
            Side::Own => format!("{taken} connections were made for {requests} questions of its own"),
        }
    }
}

/// What was seen of the side that costs more; none = nobody asked anything, or it was not recorded.
pub(crate) fn look(case: &Case) -> Option<Churn> {
    let sides = [Side::Clients, Side::Own].into_iter().filter_map(|side| of(case, side));
    sides.max_by(|a, b| a.is_churn().cmp(&b.is_churn()).then(a.part.total_cmp(&b.part)))
}

fn of(case: &Case, side: Side) -> Option<Churn> {
    let all = case.fact::<Requests>().ok()?;
    let endpoints = || all.endpoints.iter().filter(|e| e.accepted == (side == Side::Clients));
    let sum = |of: fn(&Endpoint) -> f64| endpoints().map(of).sum::<f64>() * all.scale();
    let requests = sum(|e| e.response.count);
    if requests <= 0.0 {
        return None;
    }
    let (taken, calls) = match side {
        Side::Clients => (sum(|e| e.first_read.count), TAKES),
        Side::Own => (case.fact::<Handshakes>().map_or(0.0, |h| h.made.min(requests)), MAKES),
    };
    let part = part_of_calls(case, calls).unwrap_or(0.0);
    // The namespace's counter has the connections of others too, and files are closed as well.
    let makes = || part_of_calls(case, &["connect"]).unwrap_or(0.0) >= part * MUCH_IS_CONNECT;
    Some(Churn {
        side,
        taken,
        requests,
        one_each: share(taken, requests) >= MOSTLY_FIRST && (side == Side::Clients || makes()),
        part,
        cores: part * case.fact::<Limits>().map_or(0.0, |limits| limits.cores),
        time_wait: case.fact::<Counters>().ok().and_then(|c| c.max(sockstat::TIME_WAIT, "TCP")).unwrap_or(0.0),
    })
}

/// Share of the target's CPU time in calls; none = it has no samples.
fn part_of_calls(case: &Case, names: &[&str]) -> Option<f64> {
    let calls = case.fact::<Calls>().ok()?;
    let in_calls = calls.sampled.values().filter(|call| names.contains(&call.name.as_str()));
    let samples: u64 = in_calls.map(|call| call.samples).sum();
    Some(share(samples as f64, case.fact::<Profile>().ok()?.total.samples as f64))
}
