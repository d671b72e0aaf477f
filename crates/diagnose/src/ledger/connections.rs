// SPDX-License-Identifier: Apache-2.0
//! The ledger of connections: who had to act next in them, over their lives, in lines that add up to these.
//!
//! How many there are of a kind, on average over the looks at them, times the length of the capture is the time that all of them
//! lived (Little's law), and likewise for those in which bytes stand unsent. How long answers took is told by exchanges,
//! which are exact; what has not ended yet is in no exchange, and shows in the looks alone.

use std::collections::BTreeMap;

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::facts::connections::{Connections, Held};
use crate::facts::requests::{Endpoint, Requests};

/// The lines, ns by name. Those of connections that clients made begin with `accepted_`, the target's own with `made_`; each
/// kind adds up to its `open`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lives {
    /// In the order of their names.
    pub lines: BTreeMap<&'static str, f64>,
}

impl Fact for Lives {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let connections = case.fact::<Connections>()?;
        let requests = case.fact::<Requests>().ok();
        let exchanged = |accepted| {
            let of_kind = requests.iter().flat_map(|r| r.endpoints.iter()).filter(|e| e.accepted == accepted);
            Exchanged::sum(of_kind, requests.as_ref().map_or(0.0, |r| r.scale()))
        };
        let (accepted, made) = (&connections.accepted, &connections.made);
        let mut lines = BTreeMap::new();
        if accepted.open + accepted.queued > 0.0 {
            lines.extend(asked_by_clients(accepted, &exchanged(true), case.length_ns()));
        }
        if made.open > 0.0 {
            lines.extend(asked_by_target(made, &exchanged(false), case.length_ns()));
        }
        Ok(Self { lines })
    }
}

/// What exchanges of a kind took together, ns in the whole capture.
struct Exchanged {
    /// From the question until the answer began.
    owed: f64,
    /// What had come and lay unread; where clients ask, a part of the time owed.
    unread: f64,
    /// Of that, before the first read of a connection: it may have stood in the accept queue.
    first: f64,
}

impl Exchanged {
    fn sum<'e>(endpoints: impl Iterator<Item = &'e Endpoint>, scale: f64) -> Self {
        let add = |sum: Self, e: &Endpoint| Self {
            owed: sum.owed + e.awaited_ns() * scale,
            unread: sum.unread
                + (e.read_wait.sum_ns + if e.is_behind_tls() { e.first_read.sum_ns } else { 0.0 }) * scale,
            first: sum.first + e.first_read.sum_ns * scale,
        };
        endpoints.fold(Self { owed: 0.0, unread: 0.0, first: 0.0 }, add)
    }
}

/// The client asks, the target answers, the network carries the answer; then it is the client's turn again.
fn asked_by_clients(held: &Held, exchanged: &Exchanged, length: f64) -> [(&'static str, f64); 7] {
    let queued = held.queued * length;
    // What was asked there has a line of its own.
    let asked = queued.min(exchanged.first);
    let owed = (exchanged.owed - asked).max(held.unanswered * length);
    let read_wait = (exchanged.unread - asked).max(held.unread * length).min(owed);
    let (unsent, on_its_way) = (held.unsent * length, held.on_its_way * length);
    let spoken_for = owed + unsent + on_its_way;
    // Looks meet a life by chance: with what exchanges tell exactly it can come out a little longer.
    let open = (held.open * length).max(spoken_for);
    [
        ("accepted_queued", queued),
        ("accepted_read_wait", read_wait),
        ("accepted_service", owed - read_wait),
        ("accepted_unsent", unsent),
        ("accepted_unacknowledged", on_its_way),
        ("accepted_client", open - spoken_for),
        ("accepted_open", open + queued),
    ]
}

/// The target asks, the peer answers, the target reads; then nobody has anything to do.
fn asked_by_target(held: &Held, exchanged: &Exchanged, length: f64) -> [(&'static str, f64); 5] {
    let owed = exchanged.owed.max(held.unanswered * length);
    // What cannot be sent has not reached the peer.
    let unsent = (held.unsent * length).min(owed);
    let read_wait = exchanged.unread;
    let open = (held.open * length).max(owed + read_wait);
    [
        ("made_unsent", unsent),
        ("made_peer", owed - unsent),
        ("made_read_wait", read_wait),
        ("made_idle", open - owed - read_wait),
        ("made_open", open),
    ]
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use super::*;

    fn lines(text: &str) -> BTreeMap<&'static str, f64> {
        let recording = parse(&format!("meta length_ns=4e9\nexchange_window t_ns=4e9 length_ns=2e9\n{text}")).unwrap();
        let lives = Case::new(&recording).fact::<Lives>().unwrap();
        lives.lines.iter().map(|(line, ns)| (*line, (ns / 1e6).round() / 1e3)).collect()
    }

    #[test]
    fn clients_wait_for_a_tenth_of_the_time() {
        let lines = lines(
            "connection t_ns=4e9 role=accepted port=80 looks=40 open=80 unanswered=4 unread=0 on_its_way=8 queued=40
             exchange t_ns=4e9 role=accepted port=80 stage=response count=10 sum_ns=4e8
             exchange t_ns=4e9 role=accepted port=80 stage=read_wait count=10 sum_ns=1e8",
        );
        // Followed for half of the time: each exchange stands for two.
        assert_eq!((lines["accepted_read_wait"], lines["accepted_service"]), (0.2, 0.6));
        assert_eq!((lines["accepted_unacknowledged"], lines["accepted_client"]), (0.8, 6.4));
        assert_eq!((lines["accepted_queued"], lines["accepted_open"]), (4.0, 12.0));
    }

    #[test]
    fn the_target_asks_and_what_has_not_ended_counts_too() {
        let lines = lines(
            "connection t_ns=4e9 role=made peer=10.0.0.9:1 looks=40 open=120 unanswered=80 unsent=20
             exchange t_ns=4e9 role=made peer=10.0.0.9:1 stage=response count=10 sum_ns=4e8
             exchange t_ns=4e9 role=made peer=10.0.0.9:1 stage=read_wait count=10 sum_ns=1e8",
        );
        assert_eq!((lines["made_unsent"], lines["made_peer"], lines["made_read_wait"]), (2.0, 6.0, 0.2));
        assert_eq!((lines["made_idle"], lines["made_open"]), (3.8, 12.0));
        assert!(!lines.contains_key("accepted_open"));
    }

    #[test]
    fn lines_add_up_whatever_was_seen() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let mut number = || random.f64() * 10.0;
            let held = Held {
                open: number(),
                unread: number(),
                unsent: number(),
                unanswered: number(),
                queued: number(),
                on_its_way: number(),
                ..Held::default()
            };
            let exchanged = Exchanged { owed: number() + 10.0, unread: number(), first: number() };
            for lines in [&asked_by_clients(&held, &exchanged, 1.0)[..], &asked_by_target(&held, &exchanged, 1.0)] {
                let [parts @ .., (_, open)] = lines else { panic!("no lines") };
                assert!((parts.iter().map(|(_, ns)| ns).sum::<f64>() - open).abs() < 1e-9, "{lines:?}");
                assert!(parts.iter().all(|(_, ns)| *ns >= -1e-9), "{lines:?}");
            }
        }
    }
}
