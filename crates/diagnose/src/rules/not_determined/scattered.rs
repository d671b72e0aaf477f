// SPDX-License-Identifier: Apache-2.0
//! A service that waited most of the time, but for several things, of which none was enough for an accusation.

use std::collections::BTreeMap;

use super::super::Statement;
use crate::case::Case;
use crate::facts::waiting::{Waiting, wait_ns};
use crate::judgement::enough::{little, not_for_requests};
use crate::judgement::felt::Felt;
use crate::judgement::streams;
use crate::statistics::share;
use crate::walk::chains::Chain;
use crate::walk::clients::Clients;
use crate::walk::paths::{Part, What};
use crate::walk::{DNS, Kind};
use crate::wording::{percent, seconds};

/// A service that waits for two thirds of its time could be three times as fast, so it is not called healthy.
const MAX_WAITING: f64 = 0.66;

/// One of those waits, on average: shorter ones nobody feels.
pub(super) const MIN_WAIT_NS: f64 = 5e6;

/// Of the window, over all threads.
const MIN_WAITING_TIME: f64 = 0.05;

/// What there is to say, if it is such a one.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let waiting = case.fact::<Waiting>().ok()?;
    // Threads that only do the household sleep most of the time; those that serve clients are sleep-in-path's.
    // Who serves names asks others for them all day.
    let is_resolver = case.fact::<Clients>().is_ok_and(|clients| clients.serves_port(53));
    let is_usual = |chain: &Chain| chain.is_own_sleep() || is_resolver && chain.links[0].who.fd_kind == DNS;
    let (chains, ns) = waiting.of(|chain| !is_usual(chain));
    let felt = felt_of_kernel(case);
    let is_short = wait_ns(&chains) < MIN_WAIT_NS && felt.is_none();
    if is_short || not_for_requests(case, &waiting, ns).is_some() || streams::awaited(case, &chains).is_some() {
        return None;
    }
    let part = share(ns, waiting.demand_ns + ns);
    if !waiting.serves || little(case, (ns, part), MAX_WAITING, MIN_WAITING_TIME).is_some() {
        return None;
    }
    let calls = by_call(&chains);
    let named = calls.iter().take(3).map(|(call, ns)| format!("{call} for {}", seconds(ns / 1e9)));
    let (what, advice) = match calls.first() {
        Some((call, most)) if *most > ns * MOSTLY => (
            felt.map_or_else(
                || format!("mostly {call}, and whether requests wait for that is not seen"),
                |part| format!("mostly {call}: {} of the response time", percent(part)),
            ),
            "see in the report what requests waited for; with --full, whom it waited for".to_string(),
        ),
        _ => (
            "for several things of which none is most of it".into(),
            "follow the largest chains (--full): each is a part of the time, none explains it alone".into(),
        ),
    };
    Some(Statement {
        headline: format!("waits {} of its active time, {what}", percent(part)),
        advice,
        detail: format!(
            "It waited for {}, {} of its active time: {}.",
            seconds(ns / 1e9),
            percent(part),
            named.collect::<Vec<_>>().join("; ")
        ),
    })
}

/// The part of the time of requests, if most, in waits that the kernel ends for a reason which is no disk and nobody that was asked, as
/// those for a file system of another host: each may be short where a request has many.
fn felt_of_kernel(case: &Case) -> Option<f64> {
    let is_one = |part: &Part| matches!(&part.what, What::Waits(chain) if chain.links.len() == 1 && chain.end.kind == Kind::Kernel);
    Felt::of(case)?.most(|part| !part.before && is_one(part))
}

/// Of the time that it waited: then it is one thing.
const MOSTLY: f64 = 2.0 / 3.0;

/// In which calls, and for how long, most first.
fn by_call(chains: &[&Chain]) -> Vec<(String, f64)> {
    let mut by: BTreeMap<String, f64> = BTreeMap::new();
    for chain in chains {
        let first = &chain.links[0].who;
        *by.entry(format!("{} in {}", first.name(), first.call_words())).or_default() += chain.ns;
    }
    let mut calls: Vec<(String, f64)> = by.into_iter().collect();
    calls.sort_by(|a, b| b.1.total_cmp(&a.1));
    calls
}
