// SPDX-License-Identifier: Apache-2.0
//! A service that answers nobody, or not all: how many wait for it in vain, and in what its threads stand for the whole of the window.
//! Nothing ends such a wait, so that nothing is known of it but that it goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use recording::tables::Process;

use crate::case::Case;
use crate::facts::connections::{Connections, Held};
use crate::facts::followed::Followed;
use crate::facts::hanging::AllHanging;
use crate::facts::readers::Readers;
use crate::facts::requests::Requests;
use crate::facts::servers::Servers;
use crate::facts::silent::Silent;
use crate::facts::unexplained::Unexplained;
use crate::judgement::hanging;
use crate::judgement::silent::{Awaited, awaited};
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::{ThreadLedger, Threads};
use crate::statistics::ratio;
use crate::verdict::{Evidence, Explains, evidence};
use crate::wording::{plural, seconds, some};

pub(crate) use crate::ledger::threads::ALL_THE_TIME;

/// Requests at a time: one or two may be long polls.
pub(crate) const SEVERAL: f64 = 3.0;

/// Of the requests that hang: the one that is in hand was read.
pub(crate) const NEARLY_ALL: f64 = 0.9;

/// Likewise: a pool of threads has some of them in hand.
pub(crate) const A_GOOD_PART: f64 = 0.25;

/// Who was answered while requests hung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// Others were.
    Answered,
    /// Nobody was.
    Nobody,
    /// Exchanges were not followed all the time, and no answer was seen.
    Untold,
}

impl Others {
    fn of(case: &Case) -> Self {
        let is_answered =
            |requests: Arc<Requests>| requests.endpoints.iter().any(|e| e.accepted && e.response.count > 0.0);
        let is_told = case.fact::<Followed>().is_ok_and(|followed| followed.is_whole());
        match case.fact::<Requests>().is_ok_and(is_answered) {
            true => Self::Answered,
            false if is_told => Self::Nobody,
            false => Self::Untold,
        }
    }

    /// For the begin of a sentence about those that hang.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Answered => "Others were answered, but",
            Self::Nobody => "Nobody was answered, and",
            Self::Untold => "Whether others were answered is not known, but",
        }
    }
}

/// Requests that hang.
pub(crate) struct Hung {
    /// Whether others were answered meanwhile.
    pub others: Others,
    /// Requests that wait for one, and connections in accept queues, on average.
    pub requests: f64,
    /// For how long so far, on average, ns.
    pub owed_ns: f64,
    /// Of those, the ones in which what came lies unread.
    pub unread: f64,
}

impl Hung {
    /// What a finding about them explains.
    pub(crate) fn explains(&self, case: &Case) -> Explains {
        Explains::hanging(self.requests * case.seconds())
    }

    /// What every finding about them rests on, as its first evidence.
    pub(crate) fn evidence(&self) -> Vec<Evidence> {
        vec![
            evidence("requests without an answer", self.requests, "at a time", "0", "ss -tn"),
            evidence("of these unread", self.unread, "at a time", "0", "ss -tn  # Recv-Q"),
            evidence("for how long so far", self.owed_ns / 1e9, "s", "as long as an answer takes", ""),
        ]
    }
}

/// Whether several requests wait in vain.
pub(crate) fn look(case: &Case) -> Option<Hung> {
    any(case).filter(|hung| hung.requests >= SEVERAL)
}

/// Whether any do, were it one or two.
pub(crate) fn any(case: &Case) -> Option<Hung> {
    let (requests, owed_ns) = hanging::told(&*case.fact::<AllHanging>().ok()?)?;
    // Whoever stands in the accept queue has not been met at all.
    let Held { unread, queued, .. } = case.fact::<Connections>().ok()?.accepted;
    Some(Hung { others: Others::of(case), requests: requests + queued, owed_ns, unread: unread + queued })
}

/// The one thread that should read what clients ask, and does not: it computes, or sleeps, all the time. Others of its process are
/// parked, or wait for something else that would have woken them. (A thread of the household that sleeps beside a server that has locked
/// itself out is none: only a process's first thread is asleep in its place, and then nobody else has a request in hand.)
pub(crate) fn reader(case: &Case, hung: &Hung) -> Option<(ThreadLedger, Stuck)> {
    // The one request that it has in hand was read.
    if hung.others != Others::Nobody || hung.unread + 1.0 < hung.requests * NEARLY_ALL {
        return None;
    }
    let (ledger, servers) = (case.fact::<Threads>().ok()?, case.fact::<Servers>().ok()?);
    let (window_ns, mut threads, mut found) = (case.length_ns(), 0, None);
    for thread in ledger.threads.iter().filter(|thread| thread.lines.wall_ns > 0.0 && servers.has(thread.pid)) {
        threads += 1;
        match stuck(thread, window_ns) {
            Some(Stuck::Parked) => {}
            Some(stuck) if found.is_none() => found = Some((thread.clone(), stuck)),
            _ => return None,
        }
    }
    let is_first = |thread: &ThreadLedger| thread.tid == thread.pid && hung.requests - hung.unread <= IN_ITS_HAND;
    found.filter(|(thread, stuck)| *stuck != Stuck::Sleeps || threads == 1 || is_first(thread))
}

/// Requests that have been read, as averages over looks tell one.
const IN_ITS_HAND: f64 = 1.5;

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

/// Threads that stood all the time in something that says more than that they wait: how many, and in what. A futex or a poll says
/// nothing.
pub(crate) fn telling(case: &Case, hung: &Hung) -> Option<(usize, Blocked)> {
    // Of threads in reads, as many as there are connections whose clients ask for nothing wait for these.
    let Held { open, late, .. } = case.fact::<Connections>().ok()?.accepted;
    let idle = (open - late).max(0.0).round() as usize;
    let beyond_idle = |(line, threads)| match line {
        Blocked::SocketRead => (line, usize::saturating_sub(threads, idle)),
        _ => (line, threads),
    };
    let says_nothing =
        |line: &Blocked| matches!(line, Blocked::Futex | Blocked::Poll | Blocked::Accept | Blocked::Other);
    let lines = all_the_time(case)?.into_iter().map(beyond_idle).filter(|(line, _)| !says_nothing(line));
    let (line, threads) = lines.max_by_key(|(_, threads)| *threads)?;
    // Threads of the household sleep too; as many as requests, or a good part, are who has them in hand.
    (threads as f64 >= (hung.requests * A_GOOD_PART).max(1.0)).then_some((threads, line))
}

/// A thread that stands all the time in something that no thread which waits for work stands in.
pub(crate) fn one_that_stands(case: &Case) -> Option<(ThreadLedger, Blocked)> {
    const NEVER_FOR_WORK: [Blocked; 3] = [Blocked::FileLock, Blocked::Connect, Blocked::SocketSend];
    let (ledger, servers) = (case.fact::<Threads>().ok()?, case.fact::<Servers>().ok()?);
    let threads: Vec<&ThreadLedger> = ledger.threads.iter().filter(|t| t.tid != 0 && servers.has(t.pid)).collect();
    let found = threads.iter().find_map(|thread| stands(case, thread, &NEVER_FOR_WORK));
    found.or_else(|| worker_that_stands(case, &threads))
}

/// The only thread of a worker's process that listens itself, in something that nobody waits for clients in, while another one that its
/// parent has started takes some: workers that wait for their work at a pipe all do, and helpers do not listen.
fn worker_that_stands(case: &Case, threads: &[&ThreadLedger]) -> Option<(ThreadLedger, Blocked)> {
    const NEVER_FOR_CLIENTS: [Blocked; 2] = [Blocked::Pipe, Blocked::Sleep];
    const FOR_CLIENTS: [Blocked; 2] = [Blocked::Accept, Blocked::Poll];
    let mut by_pid: BTreeMap<u32, usize> = BTreeMap::new();
    threads.iter().for_each(|thread| *by_pid.entry(thread.pid).or_default() += 1);
    let rows = case.recording.rows::<Process>().iter().filter(|row| !row.listen.is_empty());
    let parents: BTreeMap<u32, u32> = rows.map(|row| (row.pid, row.ppid)).collect();
    // Who has started the others minds them.
    let mind: BTreeSet<u32> = parents.values().copied().collect();
    let works = |thread: &&&ThreadLedger| {
        by_pid[&thread.pid] == 1 && parents.contains_key(&thread.pid) && !mind.contains(&thread.pid)
    };
    let takes = |thread: &&&ThreadLedger| {
        2.0 * FOR_CLIENTS.iter().map(|line| thread.lines.blocked(*line)).sum::<f64>() >= case.length_ns()
    };
    let taking: BTreeSet<u32> = threads.iter().filter(works).filter(takes).map(|t| parents[&t.pid]).collect();
    let mut beside = threads.iter().filter(works).filter(|thread| taking.contains(&parents[&thread.pid]));
    beside.find_map(|thread| stands(case, thread, &NEVER_FOR_CLIENTS))
}

/// A thread with the one of these lines in which it is all the time.
fn stands(case: &Case, thread: &ThreadLedger, lines: &[Blocked]) -> Option<(ThreadLedger, Blocked)> {
    let least = case.length_ns() * ALL_THE_TIME;
    let line = lines.iter().find(|line| thread.lines.blocked(**line) >= least)?;
    Some((thread.clone(), *line))
}

/// Threads in futex for each request that stands: each of these has one in hand, or waits for that.
pub(crate) const AS_MANY: RangeInclusive<f64> = 0.7..=1.5;

/// Requests followed, from which on it is known that one thread reads all.
const FOLLOWED: usize = 20;

/// Threads that stand in futex at a time, if they are about as many as the requests that stand in the target: before a lock, in the main,
/// where each thread has a request. (A pool without work is as large as it is, whatever stands elsewhere.) In a loop none has.
pub(crate) fn as_many_in_futex(case: &Case) -> Option<f64> {
    if case.fact::<Readers>().is_ok_and(|readers| readers.who.len() == 1 && readers.requests >= FOLLOWED) {
        return None;
    }
    let (late, ledger) = (case.fact::<Unexplained>().ok()?.late, case.fact::<Threads>().ok()?);
    let stood_ns: f64 = ledger.threads.iter().map(|thread| thread.lines.blocked(Blocked::Futex)).sum();
    let threads = ratio(stood_ns, case.length_ns());
    (late >= 1.0 && AS_MANY.contains(&ratio(threads, late))).then_some(threads)
}

/// In what threads stand all the time, as a sentence: "All the time 28 threads stood in futex, 1 in poll."
pub(crate) fn where_threads_stand(case: &Case) -> Option<String> {
    let stood = |line: &Blocked| match line {
        Blocked::Stopped => "still, stopped".to_string(),
        line => format!("in {}", line.words()),
    };
    let told = |(at, (line, threads)): (usize, &(Blocked, usize))| match at {
        0 => format!("{} stood {}", plural(*threads, "thread"), stood(line)),
        _ => format!("{threads} {}", stood(line)),
    };
    let told: Vec<String> = all_the_time(case)?.iter().enumerate().map(told).collect();
    (!told.is_empty()).then(|| format!("All the time {}.", told.join(", ")))
}

/// Who owes answers and gave none, and whether anybody is seen to wait for that, as a sentence.
pub(crate) fn silent(case: &Case) -> Option<String> {
    let silent = case.fact::<Silent>().ok()?;
    let most = silent.peers.iter().max_by(|a, b| a.held.late.total_cmp(&b.held.late))?;
    let awaited = match awaited(&silent, &most.held) {
        Awaited::ByThreads => "threads stand in reads of it",
        Awaited::ByCount | Awaited::Untold => "whether requests wait for it is not seen",
    };
    Some(format!(
        "{} has owed {} for {} so far and gave none; {awaited}.",
        most.name,
        some(most.held.late, "answer"),
        seconds(most.held.late_ns / 1e9)
    ))
}

/// Of the connections in which an answer is late, those on which more came.
const GO_ON: f64 = 0.5;

/// That clients go on sending, as a sentence: then it may be that no answer is due.
pub(crate) fn go_on(case: &Case) -> Option<String> {
    let Held { late, went_on, .. } = case.fact::<Connections>().ok()?.accepted;
    let words = "Their clients go on sending meanwhile: lines of a log or measurements, to which no answer is due, or several requests \
                 on one connection.";
    (late > 0.0 && went_on >= late * GO_ON).then(|| words.to_string())
}

/// Of the connections in which an answer is late, those in which something lies unread, at most.
const ALL_READ: f64 = 0.1;

/// Whether clients go on sending, all of it is read, and none of them was ever answered: a collector of logs or measurements is like that.
pub(crate) fn is_one_way(case: &Case) -> bool {
    let answered =
        case.fact::<Requests>().is_ok_and(|r| r.endpoints.iter().any(|e| e.accepted && e.response.count > 0.0));
    let unread = |held: &Held| held.unread > held.late * ALL_READ;
    !answered && go_on(case).is_some() && !case.fact::<Connections>().is_ok_and(|all| unread(&all.accepted))
}

/// In what threads stand all the time, and how many, most first.
fn all_the_time(case: &Case) -> Option<Vec<(Blocked, usize)>> {
    let (ledger, servers) = (case.fact::<Threads>().ok()?, case.fact::<Servers>().ok()?);
    let least = case.length_ns() * ALL_THE_TIME;
    let mut by_line: BTreeMap<Blocked, usize> = BTreeMap::new();
    for thread in ledger.threads.iter().filter(|thread| thread.tid != 0 && servers.has(thread.pid)) {
        let most = thread.lines.blocked_ns.iter().find(|(_, ns)| **ns >= least);
        most.into_iter().for_each(|(line, _)| *by_line.entry(*line).or_default() += 1);
    }
    let mut by_line: Vec<(Blocked, usize)> = by_line.into_iter().collect();
    by_line.sort_by_key(|(_, threads)| std::cmp::Reverse(*threads));
    Some(by_line)
}

#[cfg(test)]
pub(crate) mod tests;
