// SPDX-License-Identifier: Apache-2.0
//! A service that answers nobody at all: how many wait for it, and in what its threads stand for the whole of the window. Nothing
//! ends such a wait, so that nothing is known of it but that it goes on.

use std::collections::BTreeMap;

use crate::case::Case;
use crate::facts::connections::{Connections, Held};
use crate::facts::hanging::AllHanging;
use crate::facts::requests::{Endpoint, Requests};
use crate::judgement::hanging;
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::{ThreadLedger, Threads};
use crate::wording::plural;

/// Of the window, a thread in one state: it never left it. The rest is what the books are off by.
const ALL_THE_TIME: f64 = 0.95;

/// Requests at a time: one or two may be long polls.
const SEVERAL: f64 = 3.0;

/// Nobody gets an answer.
pub(crate) struct Hung {
    /// Requests that wait for one, and connections in accept queues, on average.
    pub requests: f64,
    /// For how long so far, on average, ns.
    pub owed_ns: f64,
    /// Of those, the ones in which what came lies unread.
    pub unread: f64,
}

/// Whether nobody was answered in the whole window, although several wait.
pub(crate) fn look(case: &Case) -> Option<Hung> {
    let (requests, owed_ns) = hanging::told(&*case.fact::<AllHanging>().ok()?)?;
    // Whoever stands in the accept queue has not been met at all.
    let Held { unread, queued, .. } = case.fact::<Connections>().ok()?.accepted;
    let hung = Hung { requests: requests + queued, owed_ns, unread: unread + queued };
    (hung.requests >= SEVERAL && answers(case, |endpoint| endpoint.accepted) == 0.0).then_some(hung)
}

/// Answers that were seen at some endpoints.
pub(crate) fn answers(case: &Case, which: impl Fn(&Endpoint) -> bool) -> f64 {
    let Ok(requests) = case.fact::<Requests>() else { return 0.0 };
    requests.endpoints.iter().filter(|endpoint| which(endpoint)).map(|endpoint| endpoint.response.count).sum()
}

/// What is owed to the target for about as long as it owes its clients: by whom, and how much of it.
pub(crate) fn peer(case: &Case, hung: &Hung) -> Option<(String, Held)> {
    let connections = case.fact::<Connections>().ok()?;
    let is_it = |(name, held): &&(String, Held)| {
        let as_long = (hung.owed_ns * LEAST_OF..=hung.owed_ns * MOST_OF).contains(&held.late_ns);
        // A connection over which something was sent once, and nothing is waited for, looks the same: who stands in a read of it
        // waits, and so does a service with as many questions under way as it has clients.
        let is_waited_for = held.awaited >= held.late * MOSTLY || held.late >= (hung.requests * MOSTLY).max(SEVERAL);
        held.late >= 1.0 && as_long && is_waited_for && answers(case, |e| !e.accepted && e.name == *name) == 0.0
    };
    connections.peers.iter().filter(is_it).max_by(|a, b| a.1.late.total_cmp(&b.1.late)).cloned()
}

/// The one thread that should read what clients ask, and does not: it computes, or sleeps, all the time. Others of its process are
/// parked, or wait for something else that would have woken them.
pub(crate) fn reader(case: &Case, hung: &Hung) -> Option<(ThreadLedger, Stuck)> {
    // The one request that it has in hand was read.
    if hung.unread + 1.0 < hung.requests * NEARLY_ALL {
        return None;
    }
    let ledger = case.fact::<Threads>().ok()?;
    let window_ns = case.length_ns();
    let mut found = None;
    for thread in ledger.threads.iter().filter(|thread| thread.lines.wall_ns > 0.0) {
        match stuck(thread, window_ns) {
            Some(Stuck::Parked) => {}
            Some(stuck) if found.is_none() => found = Some((thread.clone(), stuck)),
            _ => return None,
        }
    }
    found
}

/// In what a thread is for the whole of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// On a CPU, or waiting for one.
    Computes,
    /// In a sleep of its own.
    Sleeps,
    /// In a futex, or in a poll that nothing ended.
    Parked,
}

fn stuck(thread: &ThreadLedger, window_ns: f64) -> Option<Stuck> {
    let lines = &thread.lines;
    let least = window_ns * ALL_THE_TIME;
    match lines {
        _ if lines.demand_ns() >= least => Some(Stuck::Computes),
        _ if lines.blocked(Blocked::Sleep) >= least => Some(Stuck::Sleeps),
        _ if lines.blocked(Blocked::Futex) >= least || lines.blocked(Blocked::Poll) >= least => Some(Stuck::Parked),
        _ => None,
    }
}

/// In what threads stand all the time, as a sentence: "All the time 28 threads stood in futex, 1 in poll."
pub(crate) fn where_threads_stand(case: &Case) -> Option<String> {
    let ledger = case.fact::<Threads>().ok()?;
    let least = case.length_ns() * ALL_THE_TIME;
    let mut by_line: BTreeMap<Blocked, usize> = BTreeMap::new();
    for thread in ledger.threads.iter().filter(|thread| thread.tid != 0) {
        let most = thread.lines.blocked_ns.iter().find(|(_, ns)| **ns >= least);
        most.into_iter().for_each(|(line, _)| *by_line.entry(*line).or_default() += 1);
    }
    let mut by_line: Vec<(Blocked, usize)> = by_line.into_iter().collect();
    by_line.sort_by_key(|(_, threads)| std::cmp::Reverse(*threads));
    let words = |line: Blocked| line.line().replacen("blocked_", "", 1).replace('_', " ");
    let told = |(at, (line, threads)): (usize, &(Blocked, usize))| match at {
        0 => format!("{} stood in {}", plural(*threads, "thread"), words(*line)),
        _ => format!("{threads} in {}", words(*line)),
    };
    let told: Vec<String> = by_line.iter().enumerate().map(told).collect();
    (!told.is_empty()).then(|| format!("All the time {}.", told.join(", ")))
}

/// Of those that hang: most.
const MOSTLY: f64 = 0.5;
/// Likewise, of which some may have been read.
const NEARLY_ALL: f64 = 0.9;
/// Of the time for which clients have been waiting: the question came out of a request, and several of them at different times.
const LEAST_OF: f64 = 0.2;
const MOST_OF: f64 = 1.2;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use recording::text::parse;

    /// Twenty requests that have hung for six seconds and lie unread but one, beside threads as they come: name and ledger line.
    pub(crate) fn text(threads: &[(&str, &str)], more: &str) -> String {
        let mut text = format!(
            "meta host.arch=x86_64 length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
             process pid=1 comm=svc listen=[\"tcp 0.0.0.0:80\"]
             exchange_window t_ns=4e9 length_ns=4e9
             connection t_ns=4e9 role=accepted port=80 looks=40 open=800 unread=760 unanswered=800 late=800 late_ns=480e10
             {more}\n"
        );
        for (nth, (comm, line)) in (1..).zip(threads) {
            let (spent, wait) = match *line {
                "cpu" => ("cpu_ns=4e9", String::new()),
                call => {
                    ("blocked_ns=4e9", format!("wait t_ns=4e9 pid=1 tid={nth} syscall={call} state=1 total_ns=4e9\n"))
                }
            };
            text += &format!("thread t_ns=4e9 pid=1 tid={nth} comm={comm} wall_ns=4e9 {spent}\n{wait}");
        }
        text
    }

    /// System calls of x86-64.
    pub(crate) const SLEEP: &str = "230";
    pub(crate) const FUTEX: &str = "202";
    pub(crate) const EPOLL: &str = "232";
    pub(crate) const READ: &str = "45 fd_kind=socket";

    fn reader(threads: &[(&str, &str)], more: &str) -> Option<Stuck> {
        let recording = parse(&text(threads, more)).unwrap();
        let case = Case::new(&recording);
        super::reader(&case, &look(&case)?).map(|(_, stuck)| stuck)
    }

    #[test]
    fn the_one_thread_that_neither_waits_nor_is_parked() {
        assert_eq!(reader(&[("loop", SLEEP)], ""), Some(Stuck::Sleeps));
        assert_eq!(reader(&[("loop", "cpu"), ("pool", FUTEX), ("timer", EPOLL)], ""), Some(Stuck::Computes));
        assert_eq!(reader(&[("loop", EPOLL), ("pool", FUTEX)], ""), None, "it would have been woken");
        assert_eq!(reader(&[("one", SLEEP), ("two", SLEEP)], ""), None, "one of them is somebody's clock");
        let read = |text: &str| text.replace("open=800 unread=760", "open=800 unread=400");
        let at_work = parse(&read(&text(&[("loop", "cpu")], ""))).unwrap();
        let case = Case::new(&at_work);
        assert!(super::reader(&case, &look(&case).unwrap()).is_none(), "it has half of them in hand");
        let queued = read(&text(&[("loop", "cpu")], "")).replace("unread=400", "unread=400 queued=40000");
        let queued = parse(&queued).unwrap();
        let case = Case::new(&queued);
        assert!(super::reader(&case, &look(&case).unwrap()).is_some(), "in the accept queue nobody has read anything");
        assert_eq!(reader(&[("loop", SLEEP), ("worker", READ)], ""), None);
        let answered = "exchange role=accepted port=80 stage=response count=9 sum_ns=1 length_ns=[1000000] counts=[9]";
        assert_eq!(reader(&[("loop", SLEEP)], answered), None);
    }

    #[test]
    fn what_threads_stand_in() {
        let recording = parse(&text(&[("a", FUTEX), ("b", FUTEX), ("c", EPOLL)], "")).unwrap();
        let said = where_threads_stand(&Case::new(&recording)).unwrap();
        assert_eq!(said, "All the time 2 threads stood in futex, 1 in poll.");
    }

    #[test]
    fn who_owes_for_as_long() {
        let peer = |more: &str| {
            let made = format!("connection t_ns=4e9 role=made peer=10.0.0.9:1 looks=40 {more}");
            let recording = parse(&text(&[("worker", READ)], &made)).unwrap();
            let case = Case::new(&recording);
            super::peer(&case, &look(&case)?).map(|(name, _)| name)
        };
        assert!(peer("open=320 late=320 late_ns=160e10 awaited=320").is_some(), "a pool of eight threads");
        assert!(peer("open=800 late=720 late_ns=400e10").is_some(), "a loop");
        assert_eq!(peer("open=40 late=40 late_ns=24e10"), None, "a connection over which logs go, say");
        assert_eq!(peer("open=320 late=320 late_ns=1600e10 awaited=320"), None, "a subscription of long ago");
        assert_eq!(peer("open=320 late=320 late_ns=4e10 awaited=320"), None, "asked a moment ago");
    }
}
