// SPDX-License-Identifier: Apache-2.0
//! Connections stand in the accept queue, because all threads that accept are at work for others.

use std::collections::BTreeSet;

use super::super::{Checked, confidence, evidence, found};
use super::{MAX_FREE, advice, all, finding};
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::requests::Requests;
use crate::facts::waiting::Waiting;
use crate::facts::workers::Workers;
use crate::ledger::threads::Threads;
use crate::statistics::share;
use crate::verdict::Explains;
use crate::walk::chains::Chain;
use crate::walk::kind_of_thread;
use crate::wording::percent;

/// Of the workers' time, waiting for the next request in a connection that is kept open.
const KEPT: f64 = 0.5;

pub(super) fn of_workers(case: &Case, workers: &Workers, waiting: &Waiting) -> Checked {
    let threads = match workers.threads {
        n if workers.none_taken => format!("all {n} threads that answer were"),
        1 if workers.by_elimination => "the one thread that can accept was".to_string(),
        n if workers.by_elimination => format!("{}, which alone can accept, were", all(n)),
        1 => "the one thread that was seen to accept was".to_string(),
        n => format!("all {n} threads that were seen to accept were"),
    };
    let waits = of_their_own(case, workers, waiting);
    let none = if workers.none_taken { ", of which none was taken, while those of before were answered" } else { "" };
    let summary = format!(
        "{:.1} connections waited for accept() at {} on average, and for {} of the window at least one{none}; {threads} at \
         work: {} of that thread time was waiting, {} CPU demand, {} waiting for a connection",
        workers.queue,
        workers.listener,
        percent(workers.queued),
        percent(1.0 - workers.busy - workers.free),
        percent(workers.busy),
        percent(workers.free)
    );
    // Where none is taken, those that the others keep are served.
    let open = case.fact::<Connections>().ok().filter(|_| workers.none_taken).map_or(0.0, |all| all.accepted.open);
    let share = workers.queue / (workers.queue + open.max(workers.threads as f64));
    let explains = Explains::queued(share, workers.queue * case.seconds());
    let mut finding = finding(case, waits, explains, summary)?;
    if workers.by_elimination && workers.threads > 1 {
        finding.confidence = confidence(case, 1);
    }
    finding.evidence = vec![
        evidence("in the accept queue, on average", workers.queue, "connections", "near 0", workers.look()),
        evidence("the queue was not empty", workers.queued * 100.0, "%", "near 0", ""),
        evidence("threads that accept", workers.threads as f64, "threads", "", ""),
        evidence("of their thread time, waiting for a connection", workers.free * 100.0, "%", "most", ""),
        evidence("of their thread time, CPU demand", workers.busy * 100.0, "%", "", ""),
        evidence("of their thread time, in clients' idle connections", workers.kept * 100.0, "%", "near 0", ""),
    ];
    let headline = format!("{:.0} connections stand in the accept queue{}", workers.queue, taken(workers));
    let otherwise = otherwise(case, workers);
    let advice = waits.filter(|_| !workers.none_taken).map_or(otherwise.to_string(), |chain| advice(chain, otherwise));
    found(finding, headline, advice)
}

/// What those that should take them do, behind that they stand.
fn taken(workers: &Workers) -> String {
    match (workers.threads, workers.none_taken) {
        (_, true) if workers.free >= MAX_FREE => {
            ", and none is taken while its threads are free: a limit, it seems".into()
        }
        (1, true) => ", and none is taken: the one thread that accepts keeps to those that it has".into(),
        (n, true) => format!(", and none is taken: {} keep to those that they have", all(n)),
        (1, false) => ": the one thread that accepts is taken".into(),
        (n, false) => format!(": {} that accept are taken", all(n)),
    }
}

/// What to do, unless somebody whom they wait for is to be looked at.
fn otherwise(case: &Case, workers: &Workers) -> &'static str {
    match workers.kept {
        _ if workers.none_taken && workers.free >= MAX_FREE => {
            "raise its limit of connections (maxconn, worker_connections), or close idle ones; else see whoever accepts"
        }
        _ if workers.none_taken => {
            "limit how long, or for how many requests, a client may keep its connection, or have more workers than clients"
        }
        kept if kept >= KEPT && sending(case, workers) * 2.0 >= kept => {
            "clients that send their requests slowly hold them: have a proxy take these whole first, or more workers"
        }
        kept if kept >= KEPT => "clients that keep idle connections hold them: a shorter keep-alive, or more workers",
        _ => "look at what they wait for: more workers help only if that has room",
    }
}

/// Of what those threads waited for somebody, the part that has to be one chain's to be told.
const A_GOOD_PART: f64 = 0.25;

/// What those threads themselves waited for most, if for one thing in the main: others of the target have waits of their own.
fn of_their_own<'w>(case: &Case, workers: &Workers, waiting: &'w Waiting) -> Option<&'w Chain> {
    let ledger = case.fact::<Threads>().ok()?;
    let theirs = ledger.threads.iter().filter(|t| workers.who.contains(&(t.pid, t.tid)));
    let kinds: BTreeSet<(u32, String)> = theirs.map(|t| (t.pid, kind_of_thread(&t.comm))).collect();
    let is_theirs = |chain: &&Chain| kinds.contains(&(chain.links[0].who.pid, chain.links[0].who.comm.clone()));
    let chain = waiting.chains.iter().find(is_theirs)?;
    // Chains are of one process each.
    let threads = workers.who.iter().filter(|(pid, _)| *pid == chain.links[0].who.pid).count();
    let waited = threads as f64 * case.length_ns() * (1.0 - workers.busy - workers.free - workers.kept);
    (chain.ns >= waited * A_GOOD_PART).then_some(chain)
}

/// Of those threads' time, in requests of which the first part had been read and the rest was still to come.
fn sending(case: &Case, workers: &Workers) -> f64 {
    let Ok(requests) = case.fact::<Requests>() else { return 0.0 };
    let rest: f64 = requests.endpoints.iter().filter(|e| e.accepted).map(|e| e.rest.sum_ns).sum();
    share(rest * requests.scale(), workers.threads as f64 * case.length_ns())
}
