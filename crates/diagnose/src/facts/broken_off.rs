// SPDX-License-Identifier: Apache-2.0
//! Requests whose connection ended while the answer was owed: reset by whom the target asks, or by clients of it; or closed by
//! whoever owed it. Who says goodbye without waiting for an answer, as clients of databases do, is the first to close, in good
//! order: a reset in the midst of it is none.

use std::collections::BTreeMap;

use recording::tables::Retransmit;

use super::errors::MIN_COUNT;
use super::followed::Followed;
use super::requests::{Endpoint, Requests, weights};
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::share;

/// Of the questions at one endpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Broken {
    /// The port, or the peer; of several, the one with most.
    pub name: String,
    /// They are of several, of which none has as many as matter.
    pub of_several: bool,
    /// So many.
    pub count: f64,
    /// Of these, by closing, without a reset.
    pub by_closing: f64,
    /// Of so many in all.
    pub of: f64,
}

/// Where they were, of those who answer some: one of several peers may be asked little beside the others, and fail often.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrokenOff {
    /// Questions of the target's, by one of those whom it asks.
    pub by_peer: Broken,
    /// Requests of clients, by these.
    pub by_clients: Broken,
    /// Requests of clients that the target, instead of answering, hung up on.
    pub by_target: Broken,
}

/// By chance there are a few anywhere: of those with so many that they are no chance, the one with the largest share; else all together.
fn worst(all: Vec<Broken>) -> Broken {
    let matters = all.iter().filter(|one| one.count >= MIN_COUNT);
    if let Some(worst) = matters.max_by(|a, b| share(a.count, a.of).total_cmp(&share(b.count, b.of))) {
        return worst.clone();
    }
    let most = all.iter().max_by(|a, b| a.count.total_cmp(&b.count));
    let sum = |of: fn(&Broken) -> f64| all.iter().map(of).sum::<f64>();
    Broken {
        name: most.map_or_else(String::new, |most| most.name.clone()),
        of_several: all.iter().filter(|one| one.count > 0.0).count() > 1,
        count: sum(|one| one.count),
        by_closing: sum(|one| one.by_closing),
        of: sum(|one| one.of),
    }
}

impl Fact for BrokenOff {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let (requests, followed) = (case.fact::<Requests>()?, case.fact::<Followed>()?);
        let weights = weights::of(case);
        let (mut by_peer, mut by_clients, mut by_target) = (Vec::new(), Vec::new(), Vec::new());
        for endpoint in requests.endpoints.iter().filter(|e| e.response.count > 0.0) {
            let (all, reset) =
                (endpoint.response.count + endpoint.unanswered, reset(case, (&followed, &weights), endpoint));
            let name = &endpoint.name;
            let broken =
                |count, by_closing, of| Broken { name: name.clone(), of_several: false, count, by_closing, of };
            if endpoint.accepted {
                by_clients.push(broken(reset, 0.0, all));
                by_target.push(broken(endpoint.hung_up, endpoint.hung_up, all));
                continue;
            }
            // Who is sent away before it could ask would have asked.
            let closed = endpoint.hung_up.min(endpoint.unanswered - reset) + endpoint.dismissed;
            by_peer.push(broken(reset + closed, closed, all + endpoint.dismissed));
        }
        Ok(Self { by_peer: worst(by_peer), by_clients: worst(by_clients), by_target: worst(by_target) })
    }
}

/// At most as many as there were resets at that endpoint while it was followed, and as had no answer when their connection ended: resets
/// are told of everybody in the network namespace, and ends without an answer whoever ended them, and how.
fn reset(case: &Case, (followed, weights): (&Followed, &BTreeMap<u64, f64>), endpoint: &Endpoint) -> f64 {
    let is_its = |row: &&Retransmit| match endpoint.accepted {
        true => row.is_accepted() && row.port == endpoint.port,
        false => row.is_made() && row.peer == endpoint.name,
    };
    let rows = case.recording.rows::<Retransmit>().iter().filter(is_its).filter(|row| followed.has(row.t_ns));
    let resets = rows.filter(|row| row.kind == "reset_received" && row.state == "ESTABLISHED");
    let weighted = |row: &Retransmit| row.count as f64 * weights.get(&row.t_ns).copied().unwrap_or(1.0);
    resets.map(weighted).sum::<f64>().min(endpoint.unanswered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn resets_while_an_answer_is_owed() {
        let of = |more: &str| {
            let text = format!(
                "meta target.listen=[\"tcp 0.0.0.0:80\"]
                 exchange role=accepted port=80 stage=response count=500 began=540 unanswered=40
                 exchange role=made peer=10.0.0.9:1 stage=response count=70 began=100 unanswered=30
                 exchange role=made peer=10.0.0.8:514 stage=response began=90 unanswered=90
                 {more}"
            );
            (*Case::new(&parse(&text).unwrap()).fact::<BrokenOff>().unwrap()).clone()
        };
        let peer = "retransmit kind=reset_received state=ESTABLISHED role=made peer=10.0.0.9:1 count=25";
        let found = of(peer);
        assert_eq!((found.by_peer.count, found.by_peer.of, found.by_clients.count), (25.0, 100.0, 0.0));
        assert_eq!(found.by_peer.name, "10.0.0.9:1");
        let clients = "retransmit kind=reset_received state=ESTABLISHED role=accepted port=80 count=60";
        let given_up = of(clients).by_clients;
        assert_eq!((given_up.count, given_up.of), (40.0, 540.0), "the others had their answer");
        let later =
            format!("exchange_window t_ns=1e9 length_ns=1e9\n{}", clients.replace("retransmit", "retransmit t_ns=3e9"));
        assert_eq!(of(&later).by_clients.count, 0.0, "nobody followed exchanges then");
        let in_order = peer.replace("ESTABLISHED", "CLOSE_WAIT");
        assert_eq!(of(&in_order).by_peer.count, 0.0, "it had said goodbye");
        let hung_up = |role: &str| {
            let row = format!("exchange {role} stage=response began=9 unanswered=9 hung_up=8 count=1");
            let found = of(&row);
            (found.by_target.count, found.by_peer.count)
        };
        assert_eq!(hung_up("role=accepted port=80"), (8.0, 0.0));
        assert_eq!(hung_up("role=made peer=10.0.0.9:1"), (0.0, 8.0), "without a reset");
        let one_way = "retransmit kind=reset_received state=ESTABLISHED role=made peer=10.0.0.8:514 count=90";
        assert_eq!(of(one_way).by_peer.count, 0.0, "nobody waits for an answer of whom one only tells");
    }

    /// Of two that are asked, the one that is asked little fails often.
    #[test]
    fn one_peer_is_not_told_by_the_others() {
        let text = "exchange role=made peer=10.0.0.9:1 stage=response count=20000 began=20000 unanswered=15 hung_up=15
             exchange role=made peer=10.0.0.8:1 stage=response count=900 began=1000 unanswered=100 hung_up=100";
        let by_peer = Case::new(&parse(text).unwrap()).fact::<BrokenOff>().unwrap().by_peer.clone();
        assert_eq!((by_peer.name.as_str(), by_peer.count, by_peer.of), ("10.0.0.8:1", 100.0, 1000.0));
        let replicas = (1..=8).map(|nth| {
            format!(
                "exchange role=made peer=10.0.0.{nth}:1 stage=response count=192 began=200 unanswered=8 hung_up=8\n"
            )
        });
        let by_peer =
            Case::new(&parse(&replicas.collect::<String>()).unwrap()).fact::<BrokenOff>().unwrap().by_peer.clone();
        assert_eq!((by_peer.of_several, by_peer.count, by_peer.of), (true, 64.0, 1600.0), "none has ten");
    }
}
