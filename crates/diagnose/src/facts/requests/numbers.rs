// SPDX-License-Identifier: Apache-2.0
//! How many there were, over all ports.

use super::{Endpoint, Requests, SOME};

/// Of a peer's answers, requests take on average, if most of them ask it.
const MAY_ASK: f64 = 0.5;

/// Answers that are not few, whatever there is besides.
const NOT_FEW: f64 = 20.0;

impl Requests {
    /// Which of the endpoints clients wait most at, of those with more than a few of the answers.
    pub(super) fn longest(&self) -> Option<usize> {
        let accepted = || self.endpoints.iter().enumerate().filter(|(_, endpoint)| endpoint.accepted);
        let all: f64 = accepted().map(|(_, endpoint)| endpoint.response.count).sum();
        let is_some = |count: f64| count > all * SOME || count * self.scale() >= NOT_FEW;
        let some = accepted().filter(|(_, endpoint)| is_some(endpoint.response.count));
        some.max_by(|(_, a), (_, b)| a.awaited_ns().total_cmp(&b.awaited_ns())).map(|(at, _)| at)
    }

    /// Connections that clients made and on which they were answered, in the whole capture; none = none was seen, or there are ports
    /// at which that does not tell, as where the server speaks first.
    pub fn taken(&self) -> Option<f64> {
        let accepted = || self.endpoints.iter().chain(&self.streams).filter(|e| e.accepted && e.response.count > 0.0);
        let is_told = accepted().all(|endpoint| endpoint.first_read.count > 0.0);
        let taken = accepted().map(|endpoint| endpoint.first_read.count).sum::<f64>() * self.scale();
        (is_told && taken > 0.0).then_some(taken)
    }

    /// How many requests of clients may have asked a peer, and how long they took in all, ns: not those that are mostly answered sooner
    /// than it answers, as health checks are; none where they cannot be told apart.
    pub fn that_may_ask(&self, peer: &Endpoint) -> Option<(f64, f64)> {
        let least_ns = peer.awaited_each_ns() * MAY_ASK;
        let accepted = || self.endpoints.iter().filter(|e| e.accepted);
        let all: f64 = accepted().map(|e| e.response.count).sum();
        let may = || accepted().filter(|e| e.response.mean_ns() >= least_ns && e.response.count > all * SOME);
        let count: f64 = may().map(|e| e.response.count).sum();
        (count > 0.0 && !may().any(Endpoint::is_mixed)).then(|| (count, may().map(|e| e.response.sum_ns).sum()))
    }
}
