// SPDX-License-Identifier: Apache-2.0
//! Peers that owe the target an answer and gave none while anybody watched, beside what hangs at the target itself. Whether requests
//! wait for them, `judgement/silent` says.

use super::connections::{Connections, Held};
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
        let exchanges = case.fact::<Requests>().ok();
        let answers = |name: &str| {
            let made = exchanges.iter().flat_map(|r| &r.endpoints).filter(|e| !e.accepted && e.name == name);
            made.map(|endpoint| endpoint.response.count).sum::<f64>()
        };
        let (requests, owed_ns) = hanging.together(|_| true);
        // Before, an answer may just be under way.
        let hang = owed_ns >= IN_VAIN_NS;
        let is_silent = |(name, held): &&(String, Held)| hang && held.late > 0.0 && answers(name) == 0.0;
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
