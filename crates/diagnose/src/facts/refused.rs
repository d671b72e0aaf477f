// SPDX-License-Identifier: Apache-2.0
//! Connections that were refused while they were being made, in the target's network namespace, and whether they can have been
//! the target's: by those whom it asks, and by the calls that were seen of it.

use std::collections::BTreeMap;

use recording::tables::{Retransmit, Wait};

use super::calls::Calls;
use super::connections::Connections;
use super::requests::Requests;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::share;

/// Connections that were refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refused {
    /// By those whom the target asks.
    pub by_asked: f64,
    /// By anybody else.
    pub by_others: f64,
    /// Of the latter, with most of them; empty = none.
    pub other: String,
    /// Of all, the one with most of them, and how many; empty = none.
    pub most: (String, f64),
    /// Whether that one is a port of the same network namespace at which nobody listens.
    pub nobody_listens: bool,
    /// Calls that would have been counted, were the latter the target's.
    pub expected: f64,
    /// Calls of the target for a connection that were seen and may have been refused.
    pub seen: u64,
}

impl Fact for Refused {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<Retransmit>();
        let refused = rows.iter().filter(|row| row.kind == "reset_received" && row.state == "SYN_SENT");
        let mut by_peer = ByPeer::new();
        refused.for_each(|row| *by_peer.entry(&row.peer).or_default() += row.count as f64);
        let most = most(&by_peer);
        let at_port = |row: &&Retransmit| row.kind == "reset_sent" && row.reason == "NO_SOCKET" && row.port > 0;
        let nobody = rows.iter().filter(at_port).any(|row| most.0.ends_with(&format!(":{}", row.port)));
        let (connections, requests) = (case.fact::<Connections>().ok(), case.fact::<Requests>().ok());
        let asks = |peer: &str| {
            connections.as_ref().is_some_and(|c| c.peers.iter().any(|(name, _)| name == peer))
                || requests.as_ref().is_some_and(|r| r.endpoints.iter().any(|e| !e.accepted && e.name == peer))
        };
        let (own, others): (ByPeer<'_>, ByPeer<'_>) = by_peer.into_iter().partition(|(peer, _)| asks(peer));
        let sum = |of: &ByPeer<'_>| of.values().sum::<f64>();
        let calls = case.fact::<Calls>()?;
        Ok(Self {
            by_asked: sum(&own),
            by_others: sum(&others),
            other: self::most(&others).0,
            most,
            nobody_listens: nobody,
            expected: sum(&others) * share(calls.windows.counted_ns, case.length_ns()),
            seen: seen(case, &calls),
        })
    }
}

type ByPeer<'r> = BTreeMap<&'r str, f64>;

fn most(by_peer: &ByPeer<'_>) -> (String, f64) {
    let most = by_peer.iter().max_by(|a, b| a.1.total_cmp(b.1));
    most.map_or_else(Default::default, |(peer, count)| ((*peer).to_string(), *count))
}

/// Calls for a connection that were seen, but for those that were counted and made one.
fn seen(case: &Case, calls: &Calls) -> u64 {
    let is_connect = |number: i32| case.syscall(number) == "connect";
    let counted = calls.counted.iter().filter(|((_, _, number), _)| is_connect(*number));
    let results = counted.flat_map(|(_, call)| &call.results);
    let failed: u64 = results.filter(|(result, _)| **result < 0).map(|(_, count)| *count).sum();
    let sampled = calls.sampled.iter().filter(|((_, _, number), _)| is_connect(*number));
    let waited = case.recording.rows::<Wait>().iter().filter(|row| is_connect(row.syscall)).map(|row| row.count);
    failed + sampled.map(|(_, call)| call.samples).chain(waited).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn by_those_whom_it_asks_and_by_others() {
        let text = "meta host.arch=x86_64 length_ns=1e9
             retransmit t_ns=1e9 kind=reset_received state=SYN_SENT role=made peer=10.0.0.9:1 count=5
             retransmit t_ns=1e9 kind=reset_received state=SYN_SENT role=made peer=10.0.0.8:1 count=200
             retransmit t_ns=1e9 kind=reset_received state=ESTABLISHED role=made peer=10.0.0.8:1 count=7
             connection t_ns=1 role=made peer=10.0.0.9:1 looks=10 open=10
             call_window length_ns=1e8
             call pid=1 tid=1 syscall=42 result=-115 count=2
             call pid=1 tid=1 syscall=42 result=0 count=3";
        let refused = Case::new(&parse(text).unwrap()).fact::<Refused>().unwrap();
        assert_eq!((refused.by_asked, refused.by_others, refused.other.as_str()), (5.0, 200.0, "10.0.0.8:1"));
        assert_eq!((refused.expected, refused.seen), (20.0, 2));
        assert_eq!((refused.most.0.as_str(), refused.most.1, refused.nobody_listens), ("10.0.0.8:1", 200.0, false));
        let answered =
            format!("{text}\nretransmit t_ns=1e9 kind=reset_sent reason=NO_SOCKET role=none port=1 count=200");
        assert!(Case::new(&parse(&answered).unwrap()).fact::<Refused>().unwrap().nobody_listens);
    }
}
