// SPDX-License-Identifier: Apache-2.0
//! Whether the target asks somebody many times for one request: then each answer may be quick, and all together are what clients
//! wait for.

use recording::tables::Wakeup;

use crate::case::Case;
use crate::facts::calls::Calls;
use crate::facts::requests::{LATE_NS, Requests};
use crate::statistics::ratio;
use crate::syscall::{Family, family};
use crate::walk::Walk;
use crate::walk::clients::Clients;
use crate::wording::{count, seconds};

/// Questions for one request: a few are usual.
const MANY: f64 = 5.0;

/// Connections that were seen to be taken: of fewer, the number is chance.
const ENOUGH: f64 = 10.0;

/// How often a peer is asked for each request.
pub(crate) struct Often {
    /// On average.
    pub times: f64,
    /// How long each answer takes, on average, ns.
    pub each_ns: f64,
}

/// Of the time of all answers, in quick ones: else a few that are slow are what is waited for, however many others there are.
const MOSTLY: f64 = 0.5;

/// Times a request's own time, all that it asks one after the other: averages are off by as much.
const TOGETHER: f64 = 1.2;

/// Of the waits that clients ended, for a connection: where connections are kept, workers mostly wait for what comes over them.
const MOSTLY_NEW: f64 = 0.4;

/// Whether each connection that is taken is for one request, as far as waits for clients tell.
fn one_each(case: &Case) -> bool {
    let (Ok(clients), Ok(walk)) = (case.fact::<Clients>(), case.fact::<Walk>()) else { return false };
    let of_clients = |row: &&Wakeup| walk.target.contains(&row.pid) && clients.ended(case, row);
    let rows: Vec<&Wakeup> = case.recording.rows::<Wakeup>().iter().filter(of_clients).collect();
    let new = rows.iter().filter(|row| family(&case.syscall(row.syscall)) == Family::Accept).count();
    new as f64 >= (rows.len() as f64 * MOSTLY_NEW).max(1.0)
}

impl Often {
    /// The peer that is asked so, if it is, for the requests at all ports.
    pub(crate) fn of(case: &Case, peer: &str) -> Option<Self> {
        let all = case.fact::<Requests>().ok()?;
        if all.main().is_none() {
            return Self::of_taken(case, &all, peer);
        }
        let (requests, ns) = all.that_may_ask(all.of(false, peer)?)?;
        Self::of_some(case, peer, (requests, ratio(ns, requests)))
    }

    /// The same where clients come by no way on which exchanges are seen, as the proxy before a pool of processes comes by a Unix
    /// socket: by the connections that are taken, each with one request.
    fn of_taken(case: &Case, all: &Requests, peer: &str) -> Option<Self> {
        let calls = case.fact::<Calls>().ok()?;
        let accepts = calls.counted.values().filter(|call| call.family == Family::Accept);
        let taken: f64 = accepts.map(|call| call.found as f64).sum();
        let requests = ratio(taken * all.followed_ns, calls.windows.counted_ns);
        let asked_ns = all.of(false, peer)?.awaited_ns();
        // How long requests take is not seen: as long as all questions of each, if they ask one after the other.
        (taken >= ENOUGH && one_each(case))
            .then(|| Self::of_some(case, peer, (requests, ratio(asked_ns, requests))))
            .flatten()
    }

    /// The same of some requests, such as slow ones: how many, and how long each takes. Nobody counts which of them asked; but if it
    /// is they who ask, and often, each answer takes a small part of their time.
    pub(crate) fn of_some(case: &Case, peer: &str, (requests, each_ns): (f64, f64)) -> Option<Self> {
        let all = case.fact::<Requests>().ok()?;
        let asked = all.of(false, peer).filter(|asked| !asked.is_mixed())?;
        let often = Self { times: ratio(asked.response.count, requests), each_ns: asked.awaited_each_ns() };
        let slow = asked.response.share_of_time_from(each_ns / MANY);
        // One after the other they take no longer than the request.
        let fit = often.times * often.each_ns <= each_ns * TOGETHER;
        (often.times >= MANY && slow < MOSTLY && fit).then_some(often)
    }

    /// Whether a request feels all of them, one after the other.
    pub(crate) fn is_felt(&self) -> bool {
        self.times * self.each_ns >= LATE_NS
    }

    /// For a headline.
    pub(crate) fn words(&self) -> String {
        format!("asked {} times for each request, {} at a time", count(self.times.round()), seconds(self.each_ns / 1e9))
    }

    /// What to do about it first.
    pub(crate) fn advice(&self, peer: &str) -> String {
        format!("ask {peer} for all at once (a join, a batch, a cache) instead of {} times", count(self.times.round()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn many_questions_for_one_request() {
        let often = |asked: u32| {
            let text = format!(
                "exchange role=accepted port=80 stage=response count=100 sum_ns=4e9 length_ns=[40000000] counts=[100]
                 exchange role=made peer=10.0.0.9:1 stage=response count={asked} sum_ns={}e6 length_ns=[1000000] counts=[{asked}]",
                asked
            );
            Often::of(&Case::new(&parse(&text).unwrap()), "10.0.0.9:1")
        };
        let said = often(3000).unwrap();
        assert_eq!(said.words(), "asked 30 times for each request, 1 ms at a time");
        assert!(said.advice("10.0.0.9:1").contains("instead of 30 times"));
        assert!(said.is_felt() && !often(600).unwrap().is_felt() && often(300).is_none());
    }

    /// Two ports, each with a hundred requests of 40 ms, and health checks of 0.1 ms at a third.
    #[test]
    fn questions_are_for_the_requests_of_all_ports() {
        let times = |asked: u32| {
            let at = |port: u32, count: u32, ns: u64| {
                format!(
                    "exchange role=accepted port={port} stage=response count={count} sum_ns={} length_ns=[{ns}] counts=[{count}]\n",
                    u64::from(count) * ns
                )
            };
            let text = at(80, 100, 40_000_000)
                + &at(443, 100, 40_000_000)
                + &at(9000, 5000, 100_000)
                + &format!(
                    "exchange role=made peer=10.0.0.9:1 stage=response count={asked} sum_ns={asked}e6 length_ns=[1000000] counts=[{asked}]"
                );
            Often::of(&Case::new(&parse(&text).unwrap()), "10.0.0.9:1").map(|often| often.times)
        };
        assert_eq!((times(600), times(2000)), (None, Some(10.0)));
    }

    /// Workers behind a Unix socket take 50 connections a second, one request each.
    #[test]
    fn of_connections_that_are_taken_where_requests_are_not_seen() {
        let often = |taken: u32, waits_in: u32| {
            let text = format!(
                "meta host.arch=x86_64 length_ns=10e9 target.pids=[1]
                 process pid=1
                 wakeup t_ns=1e9 pid=1 tid=1 comm=w wait_ns=2e8 blocked_ns=2e8 syscall={waits_in} family=1 context=thread waker_pid=99 waker_tid=99 waker_comm=nginx
                 exchange_window t_ns=10e9 length_ns=10e9
                 exchange role=made peer=10.0.0.9:1 stage=response count=35000 sum_ns=35e9 length_ns=[1000000] counts=[35000]
                 call_window id=1 kind=results length_ns=1e9
                 call window=1 pid=1 tid=1 syscall=43 result=4 count={taken}"
            );
            Often::of(&Case::new(&parse(&text).unwrap()), "10.0.0.9:1")
        };
        let said = often(50, 43).unwrap();
        assert!(
            said.words().starts_with("asked 70 times for each request, 1 ms") && said.is_felt(),
            "{}",
            said.words()
        );
        assert!(often(5, 43).is_none() && often(2000, 43).is_none());
        assert!(often(50, 45).is_none(), "connections that are kept, each for many requests");
    }

    /// Each request asks once; one question in 26 is slow, and so is its request.
    #[test]
    fn few_slow_answers_are_not_many_questions() {
        let text = "exchange role=accepted port=80 stage=response count=290 sum_ns=47e8 length_ns=[1800000,401000000] counts=[279,11]
             exchange role=made peer=10.0.0.9:1 stage=response count=290 sum_ns=47e8 length_ns=[1000000,400000000] counts=[279,11]";
        let recording = parse(text).unwrap();
        assert!(Often::of_some(&Case::new(&recording), "10.0.0.9:1", (11.0, 401e6)).is_none());
    }
}
