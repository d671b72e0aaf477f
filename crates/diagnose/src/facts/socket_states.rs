// SPDX-License-Identifier: Apache-2.0
//! The target's TCP sockets by state, at the begin and at the end of the capture: by listener, and by whom it asked.

use std::collections::BTreeMap;

use recording::tables::SocketState;

use super::listening::Listening;
use super::own_ends::OwnEnds;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::share;

/// Sockets of one state at one port, or towards one peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InState {
    /// Clients made them.
    pub accepted: bool,
    /// The listening socket, `tcp 0.0.0.0:80`, or the peer's address.
    pub name: String,
    /// As the kernel calls it, `CLOSE_WAIT`.
    pub state: String,
    /// How many at the begin, and at the end.
    pub counts: (f64, f64),
    /// Of those, the ones that a process has.
    pub held: (f64, f64),
}

/// Its own, by name and state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocketStates {
    /// Those of listeners first, those with most sockets at the end first.
    pub own: Vec<InState>,
    /// Of all sockets in TIME_WAIT that others made, at the end, those at its own ports; none = there is none, or not all of them are told.
    pub own_time_wait: Option<f64>,
    /// Of its listeners, who has most sockets in TIME_WAIT at the end: a client's address, the port, how many; none = none has any.
    pub most_time_wait: Option<(String, u32, f64)>,
}

impl Fact for SocketStates {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<SocketState>();
        let Some(end) = rows.iter().map(|row| row.t_ns).max() else {
            return Err(Gap::not_recorded("socket_state", "sockets were not counted by their state"));
        };
        let (ends, listening) = (case.fact::<OwnEnds>()?, case.fact::<Listening>()?);
        let is_own =
            |row: &&SocketState| row.is_accepted() && ends.has_port(row.port) || row.is_made() && ends.asks(&row.peer);
        let mut by: BTreeMap<(bool, String, &str), InState> = BTreeMap::new();
        for row in rows.iter().filter(is_own) {
            let name = if row.is_accepted() { listening.name_at(row.port) } else { row.peer.clone() };
            let of = by.entry((row.is_accepted(), name, &row.state)).or_default();
            let count = row.count as f64;
            let held = if row.held { count } else { 0.0 };
            // Of a part that ends before the capture does, only the look at the begin is known: nothing is said to have grown.
            if row.t_ns < end || end == 0 {
                (of.counts.0, of.held.0) = (of.counts.0 + count, of.held.0 + held);
            }
            if row.t_ns == end {
                (of.counts.1, of.held.1) = (of.counts.1 + count, of.held.1 + held);
            }
        }
        let named = |((accepted, name, state), of): ((bool, String, &str), InState)| InState {
            accepted,
            name,
            state: state.into(),
            ..of
        };
        let mut own: Vec<InState> = by.into_iter().map(named).collect();
        own.sort_by(|a, b| b.accepted.cmp(&a.accepted).then(b.counts.1.total_cmp(&a.counts.1)));
        let waiting = || rows.iter().filter(|row| row.t_ns == end && row.state == "TIME_WAIT");
        let accepted = || waiting().filter(|row| row.is_accepted());
        let most = accepted().filter(|row| !row.peer.is_empty()).filter(is_own).max_by_key(|row| row.count);
        let most_time_wait = most.map(|row| (row.peer.clone(), row.port, row.count as f64));
        let all: f64 = accepted().map(|row| row.count as f64).sum();
        let of_own: f64 = accepted().filter(is_own).map(|row| row.count as f64).sum();
        // Those that are told by their state alone may be anybody's.
        let are_told = waiting().all(|row| row.is_accepted() || row.is_made());
        let own_time_wait = (all > 0.0 && are_told).then(|| share(of_own, all));
        Ok(Self { own, own_time_wait, most_time_wait })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::Part;
    use recording::text::parse;

    #[test]
    fn by_listener_and_peer_at_both_ends() {
        let text = "meta length_ns=5e9 target.listen=[\"tcp 0.0.0.0:80\"]
            connection t_ns=1 role=made peer=10.0.0.9:5432 looks=10 open=3
            socket_state state=CLOSE_WAIT role=accepted port=80 held=true count=100
            socket_state t_ns=5e9 state=CLOSE_WAIT role=accepted port=80 count=150
            socket_state t_ns=5e9 state=TIME_WAIT role=accepted port=80 peer=10.0.0.7 count=900
            socket_state t_ns=5e9 state=TIME_WAIT role=accepted port=80 peer=10.0.0.8 count=20
            socket_state t_ns=5e9 state=TIME_WAIT role=accepted port=81 peer=10.0.0.8 count=9000
            socket_state t_ns=5e9 state=ESTABLISHED role=made peer=10.0.0.9:5432 count=8
            socket_state t_ns=5e9 state=ESTABLISHED role=made peer=10.0.0.6:5432 count=80";
        let states = Case::new(&parse(text).unwrap()).fact::<SocketStates>().unwrap();
        let told: Vec<_> = states.own.iter().map(|s| (s.name.as_str(), s.state.as_str(), s.counts)).collect();
        assert_eq!(
            told,
            [
                ("tcp 0.0.0.0:80", "TIME_WAIT", (0.0, 920.0)),
                ("tcp 0.0.0.0:80", "CLOSE_WAIT", (100.0, 150.0)),
                ("10.0.0.9:5432", "ESTABLISHED", (0.0, 8.0)),
            ]
        );
        assert_eq!(states.own[1].held, (100.0, 0.0));
        assert_eq!(states.most_time_wait, Some(("10.0.0.7".to_string(), 80, 900.0)));
        assert_eq!(states.own_time_wait, Some(920.0 / 9920.0));
        assert!(Case::new(&parse("").unwrap()).fact::<SocketStates>().is_err());
    }

    #[test]
    fn of_a_part_only_what_is_known_of_it() {
        let text = "meta length_ns=9e9 target.listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=4e9 pid=1 tid=1 wall_ns=4e9
            thread t_ns=9e9 pid=1 tid=1 wall_ns=5e9
            socket_state state=CLOSE_WAIT role=accepted port=80 count=100
            socket_state t_ns=9e9 state=CLOSE_WAIT role=accepted port=80 count=150";
        let whole = parse(text).unwrap();
        let counts = |from_ns, to_ns| {
            let (part, _) = whole.part(Part { from_ns, to_ns }).unwrap();
            Case::new(&part).fact::<SocketStates>().unwrap().own[0].counts
        };
        assert_eq!(counts(0, 9_000_000_000), (100.0, 150.0));
        assert_eq!(counts(4_000_000_000, 9_000_000_000), (100.0, 150.0));
        assert_eq!(counts(0, 4_000_000_000), (100.0, 100.0));
    }
}
