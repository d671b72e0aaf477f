// SPDX-License-Identifier: Apache-2.0
//! Requests that got no answer while anybody watched. Response times know only of answers: what hangs is in none of them. Where
//! exchanges were not followed, only what had been owed since before the case began is known to hang.

use std::collections::BTreeMap;

use recording::tables;

use super::connections::Connections;
use super::followed::Followed;
use super::requests::{LATE_NS, Lengths, Requests};
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::ratio;

/// At one port of the target's, averages over all looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hanging {
    /// Connections in which an answer was owed for 10 ms or longer.
    pub late: f64,
    /// Of these, the ones that are none of the answers seen.
    pub connections: f64,
    /// For how long it had been owed in those that were late, ns.
    pub owed_ns: f64,
}

/// By port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllHanging {
    /// Them.
    pub ports: BTreeMap<u32, Hanging>,
}

/// Requests that have been waiting for so long on average wait in vain, ns: who waits for a slow answer of less still gets it.
pub const IN_VAIN_NS: f64 = 1e9;

impl AllHanging {
    /// At several ports together: how many at a time, and for how long on average, ns.
    pub fn together(&self, which: impl Fn(&Hanging) -> bool) -> (f64, f64) {
        let ports = || self.ports.values().filter(|at| which(at));
        let connections: f64 = ports().map(|at| at.connections).sum();
        let owed_ns: f64 = ports().map(|at| at.owed_ns * at.connections).sum();
        (connections, ratio(owed_ns, connections))
    }
}

impl Fact for AllHanging {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let looks = case.fact::<Connections>()?.looks;
        let (requests, followed) = (case.fact::<Requests>().ok(), case.fact::<Followed>()?);
        let streams = |port| requests.as_ref().is_some_and(|requests| requests.streams_at(port));
        let mut ports: BTreeMap<u32, Hanging> = BTreeMap::new();
        let accepted = case.recording.rows::<tables::Connection>().iter().filter(|row| row.is_accepted());
        for row in accepted.filter(|row| !streams(row.port)) {
            let port = ports.entry(row.port).or_default();
            port.late += row.late as f64;
            port.owed_ns += row.late_ns as f64;
        }
        for (port, hanging) in &mut ports {
            hanging.owed_ns = ratio(hanging.owed_ns, hanging.late);
            hanging.late = ratio(hanging.late, looks);
            let answered = requests.iter().flat_map(|r| r.endpoints.iter().map(|e| (e, r.scale())));
            let answered = answered.filter(|(endpoint, _)| endpoint.accepted && endpoint.port == *port);
            let seen: f64 = answered
                .flat_map(|(endpoint, scale)| {
                    [&endpoint.response, &endpoint.handshake].map(|of| late_at_a_time(of, scale, case, &followed))
                })
                .sum();
            // Of more ports than are told apart, nobody knows at which of the rest answers came.
            let at_rest = requests.as_ref().is_some_and(|r| r.at_port(0).is_some() && r.at_port(*port).is_none());
            let is_told = !at_rest && (requests.is_some() || followed.would_tell(hanging.owed_ns));
            hanging.connections = if is_told { (hanging.late - seen).max(0.0) } else { 0.0 };
        }
        Ok(Self { ports })
    }
}

/// How many requests were late at a time on average, by the answers that came. An answer that takes a good part of the time in which
/// they are followed is seen only if it began early enough, and stands for those that did not.
fn late_at_a_time(answers: &Lengths, scale: f64, case: &Case, followed: &Followed) -> f64 {
    let (window_ns, all) = (case.length_ns(), answers.counts());
    let late = all.filter(|(length_ns, _)| *length_ns > LATE_NS);
    let at_a_time = |(length_ns, count): (f64, f64)| {
        let seen = followed.sees(length_ns).max(LEAST_SEEN);
        count * scale * ratio(length_ns - LATE_NS, window_ns) / seen
    };
    late.map(at_a_time).sum()
}

/// Of answers as long as they are followed, hardly one is seen: more is not made of it.
const LEAST_SEEN: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// Eight connections that have been late for so long on average, beside some answers of one length.
    fn of(owed_ms: u64, answers: u64, each_ms: u64) -> Hanging {
        let text = format!(
            "meta length_ns=4e9
             exchange_window t_ns=4e9 length_ns=4e9
             connection t_ns=4e9 role=accepted port=80 looks=40 open=640 late=320 late_ns={}
             exchange role=accepted port=80 stage=response count={answers} sum_ns=1 length_ns=[{}] counts=[{answers}]",
            owed_ms * 320_000_000,
            each_ms * 1_000_000
        );
        let recording = parse(&text).unwrap();
        Case::new(&recording).fact::<AllHanging>().unwrap().ports[&80]
    }

    #[test]
    fn what_the_answers_do_not_know_of() {
        let quick = of(2000, 5000, 1);
        assert_eq!((quick.late, quick.connections, quick.owed_ns), (8.0, 8.0, 2e9));
    }

    /// Slow answers that come, some of them too late for the window, are late for as long.
    #[test]
    fn what_they_know_of() {
        // 4 a second of 2 s, 8 at a time: half of them begin too late.
        let slow = of(1000, 8, 2000);
        assert!(slow.connections < 0.1 && slow.late == 8.0, "{slow:?}");
    }

    /// Answers of 2 s that come, of a service that is followed for 2.5 s in five.
    #[test]
    fn what_is_followed_in_part_is_seldom_seen_whole() {
        let text = "meta length_ns=10e9
             exchange_window t_ns=25e8 length_ns=25e8
             exchange_window t_ns=75e8 length_ns=25e8
             connection t_ns=10e9 role=accepted port=80 looks=100 open=900 late=800 late_ns=800e9
             exchange role=accepted port=80 stage=response count=4 sum_ns=1 length_ns=[2000000000] counts=[4]";
        let recording = parse(text).unwrap();
        let slow = Case::new(&recording).fact::<AllHanging>().unwrap().ports[&80];
        assert!(slow.connections < 0.1 && slow.late == 8.0, "{slow:?}");
    }

    /// On kernels that show no exchanges, and in parts of a recording in which none were followed.
    #[test]
    fn what_was_not_followed_may_have_been_answered() {
        let of = |owed_ms: u64| {
            let text = format!(
                "meta length_ns=4e9
                 connection t_ns=4e9 role=accepted port=80 looks=40 open=640 late=320 late_ns={}",
                owed_ms * 320_000_000
            );
            Case::new(&parse(&text).unwrap()).fact::<AllHanging>().unwrap().ports[&80].connections
        };
        assert_eq!((of(2000), of(5000)), (0.0, 8.0));
    }
}
