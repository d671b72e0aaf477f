// SPDX-License-Identifier: Apache-2.0
//! A connection for each request: whether clients make one, and what taking and closing them costs.

use recording::counters::sockstat;

use crate::case::Case;
use crate::facts::calls::Calls;
use crate::facts::counters::Counters;
use crate::facts::limits::Limits;
use crate::facts::profile::Profile;
use crate::facts::requests::Requests;
use crate::statistics::share;

/// In the window: fewer are clients that come and go.
const MANY: f64 = 100.0;

/// Of the requests, the first ones on their connections: with fewer, most come on connections that are kept.
const MOSTLY_FIRST: f64 = 0.7;

/// Calls that take and close connections; of a service that does so for each request, most are of these.
const CALLS: &[&str] = &["accept", "accept4", "close", "shutdown"];

/// Connections and what they cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Churn {
    /// Connections on which a client's first request was seen. (Those of the namespace's counter may be another's.)
    pub taken: f64,
    /// Requests in the window.
    pub requests: f64,
    /// There are about as many connections as requests.
    pub one_each: bool,
    /// Share of the target's CPU time in calls that take and close connections.
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
}

/// What was seen of it; none = nobody asked anything, or it was not recorded.
pub(crate) fn look(case: &Case) -> Option<Churn> {
    let all = case.fact::<Requests>().ok()?;
    let accepted = || all.endpoints.iter().filter(|e| e.accepted);
    let followed: f64 = accepted().map(|e| e.response.count).sum();
    let first: f64 = accepted().map(|e| e.first_read.count).sum();
    let requests = followed * all.scale();
    if requests <= 0.0 {
        return None;
    }
    let part = part_of_calls(case).unwrap_or(0.0);
    Some(Churn {
        taken: first * all.scale(),
        requests,
        one_each: share(first, followed) >= MOSTLY_FIRST,
        part,
        cores: part * case.fact::<Limits>().map_or(0.0, |limits| limits.cores),
        time_wait: case.fact::<Counters>().ok().and_then(|c| c.max(sockstat::TIME_WAIT, "TCP")).unwrap_or(0.0),
    })
}

/// Share of the target's CPU time in calls that take and close connections; none = it has no samples.
fn part_of_calls(case: &Case) -> Option<f64> {
    let calls = case.fact::<Calls>().ok()?;
    let in_calls = calls.sampled.values().filter(|call| CALLS.contains(&call.name.as_str()));
    let samples: u64 = in_calls.map(|call| call.samples).sum();
    Some(share(samples as f64, case.fact::<Profile>().ok()?.total.samples as f64))
}
