// SPDX-License-Identifier: Apache-2.0
//! Handshakes of TLS that take their time: no part of any answer, and whoever needs one waits for it all the same.

use crate::case::Case;
use crate::facts::requests::{Endpoint, LATE_NS, Requests};
use crate::statistics::ratio;
use crate::walk::Kind;
use crate::walk::paths::{HandshakePaths, Part, What};
use crate::wording::{percent, seconds};

/// Handshakes, from which on their times say something.
const ENOUGH: f64 = 10.0;
/// Of the time in which something was owed.
const MOSTLY: f64 = 0.5;

/// How much of the time in which something is owed at an endpoint is in its handshakes, if that is most of it, and one is felt.
pub(crate) fn mostly_handshakes(endpoint: &Endpoint) -> Option<f64> {
    let part = ratio(endpoint.handshake.sum_ns, endpoint.awaited_ns());
    let is_felt = endpoint.handshake.count >= ENOUGH && endpoint.handshake.mean_ns() >= LATE_NS;
    (is_felt && part >= MOSTLY).then_some(part)
}

/// Of so much CPU time, ns, what went into handshakes with clients, if that is most of it.
pub(crate) fn mostly_computed(case: &Case, cpu_ns: f64) -> Option<f64> {
    let (requests, paths) = (case.fact::<Requests>().ok()?, case.fact::<HandshakePaths>().ok()?);
    let (main, paths) = (requests.main()?, paths.0.main()?);
    let computes = |part: &Part| !part.before && matches!(part.what, What::Awake { kind: Kind::OnCpu, .. });
    let each_ns = ratio(paths.all.ns * paths.all.share(computes), paths.all.requests as f64);
    let part = ratio(each_ns * main.handshake.count * requests.scale(), cpu_ns);
    (main.port == paths.port && main.handshake.count >= ENOUGH && part >= MOSTLY).then_some(part.min(1.0))
}

/// Whom the target asks, and needs a handshake for.
pub(crate) struct Shaking {
    /// Of the time in which something is owed there.
    part: f64,
    /// Of one, ns.
    each_ns: f64,
}

impl Shaking {
    /// Of that peer, if most of the time is in handshakes.
    pub(crate) fn of(case: &Case, peer: &str) -> Option<Self> {
        let requests = case.fact::<Requests>().ok()?;
        let endpoint = requests.of(false, peer)?;
        Some(Self { part: mostly_handshakes(endpoint)?, each_ns: endpoint.handshake.mean_ns() })
    }

    /// For a headline.
    pub(crate) fn words(&self) -> String {
        format!("{} of that in TLS handshakes", percent(self.part))
    }

    /// What to do about it first.
    pub(crate) fn advice(&self) -> String {
        format!(
            "keep connections to it open and use them again: a handshake takes {} there",
            seconds(self.each_ns / 1e9)
        )
    }
}
