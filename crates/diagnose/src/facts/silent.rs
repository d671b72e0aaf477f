// SPDX-License-Identifier: Apache-2.0
//! Peers that owe the target an answer and gave none while anybody watched, beside what hangs at the target itself. Whether requests
//! wait for them, `judgement/silent` says.

use super::connections::{Connections, Held};
use super::followed::Followed;
use super::hanging::{AllHanging, IN_VAIN_NS};
use super::requests::Requests;
use crate::answer::Gap;
use crate::case::{Case, Fact};

/// One such peer.
#[derive(Clone, Debug, PartialEq)]
pub struct SilentPeer {
    /// Its address.
    pub name: String,
    /// Its connections.
    pub held: Held,
}

/// All of them, and what hangs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Silent {
    /// Them.
    pub peers: Vec<SilentPeer>,
    /// Requests that hang, on average.
    pub requests: f64,
    /// For how long so far, on average, ns.
    pub owed_ns: f64,
    /// Connections on which more came although an answer was late, and none went out.
    pub went_on: f64,
}

impl Fact for Silent {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let (connections, hanging) = (case.fact::<Connections>()?, case.fact::<AllHanging>()?);
        let (exchanges, followed) = (case.fact::<Requests>().ok(), case.fact::<Followed>()?);
        let made = || exchanges.iter().flat_map(|r| &r.endpoints).filter(|e| !e.accepted);
        // Of more peers than are told apart, the rest is one: which of them answered is not known.
        let answers_as = |name: &str| made().any(|e| e.name == name && e.response.count > 0.0);
        let answers = |name: &str| {
            answers_as(name) || answers_as(recording::role::OTHERS) && !made().any(|endpoint| endpoint.name == name)
        };
        let (requests, owed_ns) = hanging.together(|_| true);
        // Before, an answer may just be under way.
        let hang = owed_ns >= IN_VAIN_NS;
        let is_silent = |(name, held): &&(String, Held)| {
            hang && held.late > 0.0 && followed.would_tell(held.late_ns) && !answers(name)
        };
        let told = |(name, held): &(String, Held)| SilentPeer { name: name.clone(), held: held.clone() };
        let peers = connections.peers.iter().filter(is_silent).map(told).collect();
        Ok(Self { peers, requests, owed_ns, went_on: connections.accepted.went_on })
    }
}

impl Silent {
    /// Whether a peer is one of them.
    pub fn has(&self, name: &str) -> bool {
        self.peers.iter().any(|peer| peer.name == name)
    }
}
