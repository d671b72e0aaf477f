// SPDX-License-Identifier: Apache-2.0
//! The critical path of requests: from the answer back to the arrival of what was asked, who kept it at each moment.
//!
//! In bursts of full detail every wait and every exchange has a row. The thread that wrote the answer ran since its last
//! wakeup; before that it waited, for what the walk says; or it was handed the request by whoever woke it, and the path goes on
//! there. Where the answer followed one to a question of the target's own, the path goes on where that was asked. The parts of a
//! request add up to its response time. What the kernel does not see (one task of a runtime waits for another) is a part of its
//! own.

mod answerers;
mod back;
mod exemplars;
mod given_back;
mod owned;
#[cfg(test)]
pub(super) mod tests;
mod tree;
mod whole;

use std::collections::BTreeMap;
use std::sync::Arc;

use recording::tables::{Request, Wakeup};

use super::context::Context;
use super::ends::Ends;
use super::timelines::Timelines;
use super::{Kind, Walk, chains};
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::facts::requests::{Requests, slow_from_ns};
use crate::facts::stacks::Stacks;
use crate::statistics::share;
use back::Back;
pub use exemplars::{Exemplar, Step};
use tree::Tree;
pub use tree::{Meanwhile, Part, What};
use whole::Whole;

/// Requests that are walked at most, from all of the window: of more, each group would say the same.
const MOST: usize = 10_000;

/// Where the time of some requests went.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// How many.
    pub requests: u64,
    /// Their response times, added up, ns.
    pub ns: f64,
    /// What it went to, most first; adds up to `ns`.
    pub parts: Vec<Part>,
    /// What was asked, by how many of them, most first; empty where they have no labels.
    pub labels: Vec<(String, u64)>,
}

/// The paths of requests at one port.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Own port.
    pub port: u32,
    /// All that were followed.
    pub all: Group,
    /// Those about as long as half of them.
    pub half: Group,
    /// The slowest one in a hundred.
    pub slow: Group,
    /// Those that are slow beside the others.
    pub tail: Group,
    /// The slowest.
    pub worst: Group,
    /// By what was asked, where they have labels; those first that had most CPU time.
    pub labels: Vec<OfLabel>,
    /// A few of them one by one.
    pub exemplars: Vec<Exemplar>,
}

impl Paths {
    /// Of the CPU time of all requests with a label, what those with this one have; none where none were followed.
    pub fn on_cpu(&self, label: &str) -> Option<f64> {
        let of = self.labels.iter().find(|of| of.label == label)?;
        Some(share(of.on_cpu_ns, self.labels.iter().map(|of| of.on_cpu_ns).sum()))
    }
}

/// Requests of one label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfLabel {
    /// `GET /items/*`.
    pub label: String,
    /// How many.
    pub requests: u64,
    /// For how long threads were on a CPU for them, ns.
    pub on_cpu_ns: f64,
}

/// The paths by port, the main one first.
pub struct RequestPaths {
    /// Them.
    pub ports: Vec<Paths>,
    /// The port at which clients wait most, where that is known.
    main: Option<u32>,
}

impl RequestPaths {
    /// At the port at which clients wait most, if requests were followed there.
    pub fn main(&self) -> Option<&Paths> {
        self.ports.first().filter(|paths| self.main.is_none_or(|port| port == paths.port))
    }
}

impl Group {
    /// Share of the time that is in parts of a kind.
    pub fn share(&self, wanted: impl Fn(&Part) -> bool) -> f64 {
        share(self.parts.iter().filter(|part| wanted(part)).map(|part| part.ns).sum(), self.ns)
    }
}

impl Fact for RequestPaths {
    fn compute(case: &Case) -> Result<Self, Gap> {
        by_port(case, |whole| &whole.asked)
    }
}

/// The same of what clients wait for before they can ask: from their hello to what is said to it.
pub struct HandshakePaths(pub Arc<RequestPaths>);

impl Fact for HandshakePaths {
    fn compute(case: &Case) -> Result<Self, Gap> {
        by_port(case, |whole| &whole.shaken).map(|paths| Self(Arc::new(paths)))
    }
}

fn by_port(case: &Case, which: for<'w, 'r> fn(&'w Whole<'r>) -> &'w [&'r Request]) -> Result<RequestPaths, Gap> {
    let rows = case.recording.rows::<Request>();
    if rows.is_empty() {
        return Err(Gap::not_recorded("request", "no request was followed from end to end"));
    }
    let (walk, stacks) = (case.fact::<Walk>()?, case.fact::<Stacks>()?);
    let ends = Ends::new(case, &stacks, &walk.hand_offs.inner_loops)?;
    let context = Context {
        case,
        ends: &ends,
        timelines: &Timelines::new(case, case.recording.rows::<Wakeup>(), &ends),
        target: &walk.target,
        hand_offs: &walk.hand_offs,
        sites: &walk.sites,
    };
    let whole = Whole::new(case, rows);
    let (all, mut by_port): (_, BTreeMap<u32, Vec<&Request>>) = (which(&whole), BTreeMap::new());
    for request in all.iter().step_by(all.len().div_ceil(MOST).max(1)) {
        by_port.entry(request.port).or_default().push(request);
    }
    let mut back = Back::new(&context, &whole);
    let of = |(port, requests)| paths(&walk, &mut back, port, requests);
    let mut ports: Vec<Paths> = by_port.into_iter().map(of).collect();
    let main = case.fact::<Requests>().ok().and_then(|requests| requests.main().map(|main| main.port));
    ports.sort_by_key(|paths| (main != Some(paths.port), std::cmp::Reverse(paths.all.requests)));
    Ok(RequestPaths { ports, main })
}

/// How far around the middle requests are taken for usual ones, of all.
const AROUND: f64 = 0.1;

fn paths(walk: &Walk, back: &mut Back<'_, '_>, port: u32, mut requests: Vec<&Request>) -> Paths {
    requests.sort_by_key(|request| whole::length_ns(request));
    let number = requests.len();
    let at = |part: f64| (number as f64 * part) as usize;
    let slow_from_ns = slow_from_ns(whole::length_ns(requests[number / 2]) as f64);
    let tail = requests.partition_point(|request| (whole::length_ns(request) as f64) < slow_from_ns);
    let mut group = |from: usize, until: usize| {
        let mut tree = Tree::default();
        requests[from..until].iter().for_each(|request| back.walk(request, &mut tree));
        let group = tree.by_program(&walk.programs).group(|nodes| chains::of_nodes(walk, nodes));
        Group { labels: labels(&requests[from..until]), ..group }
    };
    Paths {
        port,
        all: group(0, number),
        half: group(at(0.5 - AROUND), at(0.5 + AROUND).max(at(0.5 - AROUND) + 1)),
        slow: group(at(0.99).min(number - 1), number),
        tail: group(tail, number),
        worst: group(number - 1, number),
        exemplars: exemplars::of(walk, back, &requests),
        // Last: all walks of a recording share one bound on their steps.
        labels: by_label(walk, back, &requests),
    }
}

/// The CPU time of each label.
fn by_label(walk: &Walk, back: &mut Back<'_, '_>, requests: &[&Request]) -> Vec<OfLabel> {
    let mut trees: BTreeMap<&str, Tree> = BTreeMap::new();
    for request in requests.iter().filter(|request| !request.label.is_empty()) {
        back.walk(request, trees.entry(&request.label).or_default());
    }
    let of = |(label, tree): (&str, Tree)| {
        let group = tree.group(|nodes| chains::of_nodes(walk, nodes));
        let on_cpu = |part: &&Part| !part.before && matches!(part.what, What::Awake { kind: Kind::OnCpu, .. });
        let on_cpu_ns = group.parts.iter().filter(on_cpu).map(|part| part.ns).sum();
        OfLabel { label: label.to_string(), requests: group.requests, on_cpu_ns }
    };
    let mut labels: Vec<OfLabel> = trees.into_iter().map(of).collect();
    labels.sort_by(|a, b| b.on_cpu_ns.total_cmp(&a.on_cpu_ns));
    labels
}

/// What they asked, most first.
fn labels(requests: &[&Request]) -> Vec<(String, u64)> {
    let mut by: BTreeMap<&str, u64> = BTreeMap::new();
    requests.iter().filter(|r| !r.label.is_empty()).for_each(|r| *by.entry(&r.label).or_default() += 1);
    let mut labels: Vec<(String, u64)> = by.into_iter().map(|(label, count)| (label.to_string(), count)).collect();
    labels.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    labels
}
