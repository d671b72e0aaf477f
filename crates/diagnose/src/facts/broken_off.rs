// SPDX-License-Identifier: Apache-2.0
//! Requests whose connection ended while the answer was owed: reset by whom the target asks, or by clients of it; or closed by
//! whoever owed it. Who says goodbye without waiting for an answer, as clients of databases do, is the first to close, in good
//! order: a reset in the midst of it is none.

use recording::tables::Retransmit;

use super::requests::{Endpoint, Requests};
use crate::answer::Gap;
use crate::case::{Case, Fact};

/// How many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrokenOff {
    /// Questions of the target's, by those whom it asks.
    pub by_peers: f64,
    /// Of these, by closing, without a reset.
    pub by_closing: f64,
    /// Questions in all, to those who answer some.
    pub asked: f64,
    /// Whoever did most of it, and how often.
    pub most: Option<(String, f64)>,
    /// Requests of clients, by these.
    pub by_clients: f64,
    /// Requests of clients that the target, instead of answering, hung up on.
    pub by_target: f64,
    /// Their requests in all.
    pub requests: f64,
}

impl Fact for BrokenOff {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let requests = case.fact::<Requests>()?;
        let mut found = Self::default();
        for endpoint in requests.endpoints.iter().filter(|e| e.response.count > 0.0) {
            let (all, count) = (endpoint.response.count + endpoint.unanswered, broken_off(case, endpoint));
            if endpoint.accepted {
                (found.by_clients, found.requests) = (found.by_clients + count, found.requests + all);
                found.by_target += endpoint.hung_up;
                continue;
            }
            // Who is sent away before it could ask would have asked.
            let closed = endpoint.hung_up.min(endpoint.unanswered - count) + endpoint.dismissed;
            let (count, all) = (count + closed, all + endpoint.dismissed);
            found.by_closing += closed;
            (found.by_peers, found.asked) = (found.by_peers + count, found.asked + all);
            if found.most.as_ref().is_none_or(|(_, most)| count > *most) {
                found.most = Some((endpoint.name.clone(), count));
            }
        }
        Ok(found)
    }
}

/// At most as many as there were resets at that endpoint, and as had no answer when their connection ended: resets are told of
/// everybody in the network namespace, and ends without an answer whoever ended them, and how.
fn broken_off(case: &Case, endpoint: &Endpoint) -> f64 {
    let is_its = |row: &&Retransmit| match endpoint.accepted {
        true => row.is_accepted() && row.port == endpoint.port,
        false => row.is_made() && row.peer == endpoint.name,
    };
    let rows = case.recording.rows::<Retransmit>().iter().filter(is_its);
    let resets = rows.filter(|row| row.kind == "reset_received" && row.state == "ESTABLISHED");
    resets.map(|row| row.count as f64).sum::<f64>().min(endpoint.unanswered)
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
        assert_eq!((found.by_peers, found.asked, found.by_clients), (25.0, 100.0, 0.0));
        assert_eq!(found.most, Some(("10.0.0.9:1".into(), 25.0)));
        let clients = "retransmit kind=reset_received state=ESTABLISHED role=accepted port=80 count=60";
        assert_eq!((of(clients).by_clients, of(clients).requests), (40.0, 540.0), "the others had their answer");
        let in_order = peer.replace("ESTABLISHED", "CLOSE_WAIT");
        assert_eq!(of(&in_order).by_peers, 0.0, "it had said goodbye");
        let hung_up = |role: &str| {
            let row = format!("exchange {role} stage=response began=9 unanswered=9 hung_up=8 count=1");
            let found = of(&row);
            (found.by_target, found.by_peers)
        };
        assert_eq!(hung_up("role=accepted port=80"), (8.0, 0.0));
        assert_eq!(hung_up("role=made peer=10.0.0.9:1"), (0.0, 8.0), "without a reset");
        let one_way = "retransmit kind=reset_received state=ESTABLISHED role=made peer=10.0.0.8:514 count=90";
        assert_eq!(of(one_way).by_peers, 0.0, "nobody waits for an answer of whom one only tells");
    }
}
