// SPDX-License-Identifier: Apache-2.0
//! Requests wait for somebody whom the target asks, as its sockets alone tell. A loop that has hundreds of requests in hand is woken for
//! another one every moment, so that no thread is seen to wait for long, and none of them is followed from end to end.

use std::sync::Arc;

use super::super::{Outcome, Statement, evidence};
use super::{MIN_WAIT_NS, RULE};
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::requests::{Endpoint, LATE_NS, Requests};
use crate::judgement::clients_wait::part_of_peer;
use crate::judgement::full::is_at_capacity;
use crate::judgement::{nagle, paths};
use crate::statistics::ratio;
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{count, percent, seconds};

/// Of the time that clients wait for usual answers, the time until that peer's. Sums of both sides, which are not put together request
/// by request: so nearly all of it.
pub(super) const NEARLY_ALL: f64 = 0.8;

/// Likewise at most: with more, it is asked for something else too.
pub(super) const AT_MOST: f64 = 1.05;

/// Questions for one request. More are asked side by side, or for something else.
pub(super) const ONE_EACH: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// Half of its answers take nearly as long as half of the clients', and so do the slow ones.
const ALIKE: f64 = 0.7;

/// Of the questions, at most so many that stand unsent: the peer is none of that time's cause.
const HELD_BACK: f64 = 0.1;

/// Answers, from which on sums say something.
pub(super) const ENOUGH: f64 = 100.0;

/// The finding, if there is such a one.
pub(super) fn check(case: &Case) -> Option<Outcome> {
    let requests = case.fact::<Requests>().ok()?;
    let clients = requests.main().filter(|clients| !clients.is_mixed() && clients.response.count >= ENOUGH)?;
    // What is followed from end to end is known better, and a service that is full has queues of its own.
    let is_known = || paths::telling(case).is_some() || is_at_capacity(case);
    if clients.response.mean_ns() < LATE_NS || is_known() {
        return None;
    }
    let asked = requests.endpoints.iter().filter(|peer| !peer.accepted && is_asked_for(&requests, clients, peer));
    let part = |peer: &Endpoint| {
        let part = part_of_peer(&requests, &peer.name)?;
        (NEARLY_ALL..=AT_MOST).contains(&part).then_some(part.min(1.0))
    };
    let found = asked.filter_map(|peer| Some((peer, part(peer)?)));
    let (peer, part) = found.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (!is_held_here(case, &peer.name) && stand_as_many(case, peer)).then(|| {
        let headline = format!(
            "requests wait for {} for {} of their response time ({} of {})",
            peer.name,
            percent(part),
            seconds(peer.awaited_each_ns() / 1e9),
            seconds(clients.response.mean_ns() / 1e9)
        );
        let finding = finding(case, &requests, clients, peer, part);
        Outcome::Found(Box::new(finding), Statement::short(headline, advice(peer)))
    })
}

/// What to do first about a peer that is seen by its socket only.
pub(super) fn advice(peer: &Endpoint) -> String {
    format!("diagnose it where it runs, or ask it for less: {}", peer.name)
}

/// What to do about it.
pub(super) fn remedy(peer: &Endpoint) -> String {
    format!(
        "Find out why {} takes so long: `sudo wakewalk diagnose --port` its port, where it runs. Ask it for less, keep what it said (a \
         cache), or do not let clients wait for it.",
        peer.name
    )
}

/// Whether a peer is asked once for each request, and takes about as long as the requests do.
fn is_asked_for(requests: &Requests, clients: &Endpoint, peer: &Endpoint) -> bool {
    let alike = |part: f64| peer.response.quantile_ns(part) >= clients.response.quantile_ns(part) * ALIKE;
    ONE_EACH.contains(&ratio(peer.response.count, asking(requests, peer)))
        && peer.response.mean_ns() >= MIN_WAIT_NS
        && alike(0.5)
        && alike(0.9)
}

/// Requests that may have asked a peer.
fn asking(requests: &Requests, peer: &Endpoint) -> f64 {
    requests.that_may_ask(peer).map_or(0.0, |(asking, _)| asking)
}

/// Whether Nagle's algorithm holds what the target asks a peer, or part of it stands unsent otherwise: that time is none of the peer's.
pub(super) fn is_held_here(case: &Case, peer: &str) -> bool {
    let holds_back = |connections: Arc<Connections>| connections.held_back(peer) >= HELD_BACK;
    nagle::cause(case).is_some_and(|held| held.endpoint.name == peer) || case.fact().is_ok_and(holds_back)
}

/// Whether looks at the connections, which count otherwise, found about as many late answers of the peer as late ones of the target.
fn stand_as_many(case: &Case, peer: &Endpoint) -> bool {
    let Ok(connections) = case.fact::<Connections>() else { return false };
    let held = connections.peers.iter().find(|(name, _)| *name == peer.name);
    let clients = connections.accepted.late;
    connections.tells() && clients > 0.0 && held.is_some_and(|(_, held)| held.late >= clients * ALIKE)
}

fn finding(case: &Case, requests: &Requests, clients: &Endpoint, peer: &Endpoint, part: f64) -> Finding {
    let (times, each) = (requests.scale(), |endpoint: &Endpoint| seconds(endpoint.awaited_each_ns() / 1e9));
    Finding {
        summary: format!(
            "{} answers of {} took {} each, and {} answers to clients {}: {} of the time that these wait is until it has answered",
            count(peer.response.count * times),
            peer.name,
            each(peer),
            count(clients.response.count * times),
            each(clients),
            percent(part)
        ),
        subject: Subject { socket: Some(peer.name.clone()), ..Subject::default() },
        explains: Explains {
            share: part,
            of: "response time of requests".into(),
            seconds: peer.awaited_ns() * times / 1e9,
        },
        evidence: vec![
            evidence("of its clients' response time, by the sockets", part, "share", "a small part", ""),
            evidence("an answer of it, on average", peer.awaited_each_ns() / 1e9, "s", "", ""),
            evidence("an answer to a client, on average", clients.response.mean_ns() / 1e9, "s", "", ""),
            evidence(
                "questions for each request",
                ratio(peer.response.count, asking(requests, peer)),
                "questions",
                "",
                "",
            ),
        ],
        remedy: remedy(peer),
        check: "The response times fall by this part at the same load.".into(),
        // Both sides of the same sockets are one source.
        ..RULE.finding(case, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::{found, silent};
    use super::super::RULE;

    /// A proxy that answers 5,000 times a second after 200 ms, and whose upstream takes `ms` of that; threads wait for it for a
    /// moment only.
    fn proxy(ms: u32, asked: u32, late: u32) -> String {
        let mut text = "meta host.arch=x86_64 length_ns=10e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=10e9 length_ns=2e9\n"
            .to_string();
        for tid in 1..=4 {
            text += &format!("thread t_ns=10e9 pid=1 tid={tid} comm=nginx wall_ns=10e9 cpu_ns=3e9 blocked_ns=7e9\n");
        }
        text + &format!(
            "connection t_ns=10e9 role=accepted port=80 looks=100 open=120000 unanswered=100000 late=95000 late_ns=95e11
             connection t_ns=10e9 role=made peer=10.0.0.7:8080 looks=100 open=120000 unanswered=100000 late={late} late_ns=95e11
             exchange t_ns=10e9 role=accepted port=80 stage=response count=10000 sum_ns=2000e9 length_ns=[200000000] counts=[10000] began=10000
             exchange t_ns=10e9 role=made peer=10.0.0.7:8080 stage=response count={asked} sum_ns={}e6 length_ns=[{ms}000000] counts=[{asked}] began={asked}
             wakeup",
            u64::from(ms) * u64::from(asked)
        )
    }

    #[test]
    fn an_upstream_that_takes_nearly_all_of_the_time() {
        let finding = found(&RULE, &proxy(199, 10_000, 94_000));
        assert_eq!(finding.subject.socket.as_deref(), Some("10.0.0.7:8080"));
        assert!((finding.explains.share - 0.995).abs() < 0.001, "{:?}", finding.explains);
    }

    #[test]
    fn one_that_takes_a_part_or_is_asked_for_something_else() {
        silent(&RULE, &proxy(120, 10_000, 57_000));
        silent(&RULE, &proxy(199, 5_000, 47_000));
        silent(&RULE, &proxy(199, 10_000, 9_000));
        let unsent = proxy(199, 10_000, 94_000).replace("late=94000", "late=94000 unsent=90000");
        silent(&RULE, &unsent);
    }
}
