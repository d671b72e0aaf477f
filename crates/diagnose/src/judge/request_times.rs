// SPDX-License-Identifier: Apache-2.0
//! What the contract says of response times, from the facts.

use std::collections::HashMap;

use crate::answer::{Handshakes, HangingTimes, LabelTimes, PathPart, Quantiles, RequestTimes, Slowest};
use crate::case::Case;
use crate::facts::hanging::AllHanging;
use crate::facts::labels::{Labelled, Labels, Place};
use crate::facts::requests::{Endpoint, Lengths, Requests};
use crate::facts::sending::{PerExchange, Sending};
use crate::facts::stacks::Stacks;
use crate::judgement::felt::Felt;
use crate::judgement::hanging;
use crate::judgement::later::rest_ns;
use crate::phrases::chain::wait;
use crate::statistics::{ratio, share};
use crate::walk::paths::{Group, Part, Paths, RequestPaths, What};
use recording::role::{ACCEPTED, MADE};

/// Of each endpoint, in their order.
pub(super) fn all(case: &Case) -> Vec<RequestTimes> {
    let Ok(requests) = case.fact::<Requests>() else { return Vec::new() };
    let endpoints = requests.endpoints.iter().map(|endpoint| of(case, &requests, endpoint));
    endpoints.chain(requests.streams.iter().map(|stream| of_stream(&requests, stream))).collect()
}

fn of(case: &Case, requests: &Requests, endpoint: &Endpoint) -> RequestTimes {
    let each = case.fact::<Sending>().ok();
    let each = each.and_then(|sending| sending.per_exchange(requests, endpoint.accepted, &endpoint.name));
    let times = measured(case, endpoint, requests, each);
    let labels = case.fact::<Labels>().ok();
    let place = labels.as_ref().and_then(|labels| labels.of(endpoint.accepted, &endpoint.name));
    if !endpoint.accepted {
        return labelled(times, place, None, of_window(requests));
    }
    let (paths, hanging) = (case.fact::<RequestPaths>().ok(), case.fact::<AllHanging>().ok());
    let paths = paths.as_ref().and_then(|all| all.ports.iter().find(|at| at.port == endpoint.port));
    let hang = hanging.as_ref().and_then(|all| all.ports.get(&endpoint.port)).filter(|at| hanging::are_many(at));
    let times = RequestTimes {
        hanging: hang.map(|at| HangingTimes { connections: at.connections, seconds: at.owed_ns / 1e9 }),
        path: paths.map_or_else(Vec::new, |at| parts(case, &at.all)),
        slowest: paths.and_then(|at| slowest(&at.worst)),
        ..times
    };
    labelled(times, place, paths, of_window(requests))
}

/// Of the window, followed: with more, the rest is what a capture begins and ends with.
const NEARLY_ALL: f64 = 0.98;

/// What one exchange that was followed stands for in the window.
fn of_window(requests: &Requests) -> impl Fn(f64) -> u64 + Copy {
    let scale = requests.scale();
    let times = if scale * NEARLY_ALL > 1.0 { scale } else { 1.0 };
    move |count: f64| (count * times).round() as u64
}

/// What is known of each exchange.
fn measured(case: &Case, endpoint: &Endpoint, requests: &Requests, each: Option<PerExchange>) -> RequestTimes {
    let (queued, of_window) = (requests.stood_in_queue(endpoint), of_window(requests));
    let later = rest_ns(endpoint).filter(|_| endpoint.accepted).map(|ns| ns / 1e9);
    let on_average = each.into_iter().flat_map(|each| [("held", Some(each.held)), ("wire", each.wire)]);
    let on_average = on_average.chain([("later", later)]);
    let waits = if queued { &endpoint.later_read } else { &endpoint.read_wait };
    let first = queued.then_some(("accept", &endpoint.first_read));
    let rest = endpoint.is_in_parts().then_some(("rest", &endpoint.rest));
    let stages = first.into_iter().chain([("read_wait", waits), ("service", &endpoint.service)]).chain(rest);
    let stages = stages.filter(|(_, lengths)| lengths.count > 0.0);
    RequestTimes {
        role: if endpoint.accepted { ACCEPTED } else { MADE }.into(),
        endpoint: endpoint.name.clone(),
        exchanges: of_window(endpoint.response.count),
        unanswered: of_window(endpoint.unanswered),
        errors: of_window(endpoint.unanswered),
        mixed: endpoint.is_mixed(),
        handshakes: endpoint
            .is_behind_tls()
            .then(|| Handshakes { count: of_window(endpoint.handshake.count), ..handshakes(case, endpoint) }),
        seconds: quantiles(&endpoint.response),
        stages: stages.map(|(name, lengths)| (name.to_string(), quantiles(lengths))).collect(),
        on_average: on_average.filter_map(|(name, seconds)| Some((name.to_string(), seconds?))).collect(),
        ..RequestTimes::default()
    }
}

fn handshakes(case: &Case, endpoint: &Endpoint) -> Handshakes {
    let lengths = &endpoint.handshake;
    let felt = Felt::of_handshakes(case).filter(|felt| endpoint.accepted && felt.port() == endpoint.port);
    let path = felt.map_or_else(Vec::new, |felt| parts(case, felt.group()));
    Handshakes { count: lengths.count as u64, seconds: quantiles(lengths), path }
}

fn of_stream(requests: &Requests, stream: &Endpoint) -> RequestTimes {
    let exchanges = of_window(requests)(stream.response.count);
    let (role, endpoint) = ("stream".into(), stream.name.clone());
    RequestTimes { role, endpoint, exchanges, ..RequestTimes::default() }
}

/// The same, with the times by label.
fn labelled(
    times: RequestTimes,
    labels: Option<&Place>,
    paths: Option<&Paths>,
    of_window: impl Fn(f64) -> u64 + Copy,
) -> RequestTimes {
    let Some(place) = labels else { return times };
    let on_cpu = |label: &str| paths.and_then(|paths| paths.on_cpu(label));
    let of = |labelled: &Labelled| LabelTimes {
        label: labelled.label.clone(),
        protocol: labelled.protocol.clone(),
        exchanges: of_window(labelled.lengths.count),
        sampled: labelled.seen as u64,
        seconds: quantiles(&labelled.lengths),
        share: place.share_of_time(labelled),
        failed: of_window(labelled.outcomes.failed),
        refused: of_window(labelled.outcomes.refused),
        cpu_share: on_cpu(&labelled.label),
    };
    let errors = times.errors + of_window(place.outcomes.failed);
    let unlabelled = place.unlabelled.iter().map(|(why, count)| (why.clone(), share(*count, place.count)));
    RequestTimes { endpoints: place.labels.iter().map(of).collect(), unlabelled: unlabelled.collect(), errors, ..times }
}

fn quantiles(lengths: &Lengths) -> Quantiles {
    let at = |part| lengths.quantile_ns(part) / 1e9;
    Quantiles { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), mean: lengths.mean_ns() / 1e9 }
}

/// Of the time of requests: what is less is left out.
const LEAST_SHARE: f64 = 0.001;

fn slowest(worst: &Group) -> Option<Slowest> {
    let (label, _) = worst.labels.first()?;
    Some(Slowest { label: label.clone(), seconds: worst.ns / 1e9 })
}

fn parts(case: &Case, group: &Group) -> Vec<PathPart> {
    let stacks = case.fact::<Stacks>().ok();
    let stack = |part: &Part| match &part.what {
        What::Waits(chain) => Some(wait(&chain.links[0], stacks.as_deref()?).stack),
        _ => None,
    };
    let of = |part: &Part| PathPart {
        who: part.who(),
        stack: stack(part).unwrap_or_default(),
        what: part.words(),
        share: share(part.ns, group.ns),
        seconds: ratio(part.ns, group.requests as f64) / 1e9,
        before_turn: part.before,
    };
    let (mut merged, mut places): (Vec<PathPart>, HashMap<String, usize>) = Default::default();
    for part in group.parts.iter().map(of) {
        // Chains that differ in their middle have the same words.
        match places.get(&part.what).map(|place| &mut merged[*place]) {
            Some(known) => (known.share, known.seconds) = (known.share + part.share, known.seconds + part.seconds),
            None => {
                places.insert(part.what.clone(), merged.len());
                merged.push(part);
            }
        }
    }
    merged.retain(|part| part.share >= LEAST_SHARE);
    merged.sort_by(|a, b| b.share.total_cmp(&a.share));
    merged
}
