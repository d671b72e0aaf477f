// SPDX-License-Identifier: Apache-2.0
//! That whoever has the CPU is a client of the target on the same host: what the two of them need together is the load, and not a
//! neighbour's doing, as long as a usual request does not feel it. Where requests are not seen, as over a Unix socket, whoever asks
//! most is also who makes the load.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::Wakeup;

use super::{ENOUGH_ANSWERS, FELT_NS, MIN_SHARE};
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::cpus::Cpus;
use crate::facts::requests::Requests;
use crate::ledger::threads::Threads;
use crate::statistics::share;
use crate::walk::Walk;
use crate::walk::clients::Clients;
use crate::wording::{percent, seconds};

/// Of the time behind others.
const MOSTLY: f64 = 0.8;

/// The same where no answer is seen: a proxy's own clients are among the others.
const MORE_THAN_HALF: f64 = 0.6;

/// Waits of the target that it ended by asking for something: fewer may be chance.
const ENOUGH: u64 = 5;

/// Why it is no neighbour's doing, if so.
pub(super) fn are_the_load(case: &Case, cpus: &Cpus) -> Option<String> {
    let clients = pids(case)?;
    let all: f64 = cpus.neighbours.iter().map(|n| n.delayed_ns).sum();
    let behind: f64 = cpus.neighbours.iter().filter(|n| clients.contains(&n.pid)).map(|n| n.delayed_ns).sum();
    let requests = case.fact::<Requests>().ok();
    let main = requests.as_ref().and_then(|requests| requests.main());
    let (least, quickly) = match main {
        Some(main) => {
            let half_ns = main.response.quantile_ns(0.5);
            let tells = main.response.count >= ENOUGH_ANSWERS && !main.is_mixed();
            (tells && half_ns < FELT_NS)
                .then(|| (MOSTLY, format!(", and half of the answers took {} or less", seconds(half_ns / 1e9))))?
        }
        None => (unseen(case, all - behind)?, String::new()),
    };
    let first = cpus.neighbours.iter().find(|n| clients.contains(&n.pid))?;
    (share(behind, all) >= least).then(|| {
        format!(
            "{} of the time behind other processes was behind its own clients on this host, first {} (pid {}): their asking is \
             its load{quickly}. Run them elsewhere to see the service alone",
            percent(share(behind, all)),
            first.name(),
            first.pid
        )
    })
}

/// The least part, where clients come by another way than TCP, on which no answer is seen; none where they do not, or where the rest of
/// the waiting is a neighbour's doing by itself.
fn unseen(case: &Case, rest_ns: f64) -> Option<f64> {
    let come_otherwise = case.fact::<Clients>().ok()?.come_otherwise(case);
    let has_tcp = case.fact::<Connections>().is_ok_and(|connections| connections.accepted.open > 0.0);
    let demand_ns = case.fact::<Threads>().ok()?.total.demand_ns();
    (come_otherwise && !has_tcp && share(rest_ns, demand_ns) < MIN_SHARE).then_some(MORE_THAN_HALF)
}

/// Of all that was asked, what a process asked at least: one that asks for a value now and then is a neighbour with something else to do.
const ASKS_MUCH: f64 = 0.1;

/// Processes that asked the target for much of what it was asked.
fn pids(case: &Case) -> Option<BTreeSet<u32>> {
    let (walk, clients) = (case.fact::<Walk>().ok()?, case.fact::<Clients>().ok()?);
    let rows = case.recording.rows::<Wakeup>().iter().filter(|row| walk.target.contains(&row.pid));
    let all = rows.filter(|row| clients.ended(case, row)).count() as f64;
    let mut by: BTreeMap<u32, u64> = BTreeMap::new();
    let others = clients.askings(case).into_iter().filter(|row| !walk.target.contains(&row.waker_pid));
    others.for_each(|row| *by.entry(row.waker_pid).or_default() += 1);
    Some(
        by.into_iter()
            .filter(|(_, times)| *times >= ENOUGH && *times as f64 >= all * ASKS_MUCH)
            .map(|(pid, _)| pid)
            .collect(),
    )
}
