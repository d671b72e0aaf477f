// SPDX-License-Identifier: Apache-2.0
//! Whether a load comes as clients do in production: how a service was asked in one recording, beside how it was in another.
//!
//! What is compared is what clients do, at the port where they wait most: how often, over which connections, from how far away, and
//! for what. How long answers take is what a load is made to find out.

use std::collections::BTreeMap;

use recording::tables::{Exchange, ExchangeWindow};
use schemars::JsonSchema;
use serde::Serialize;

use crate::case::Case;
use crate::facts::connections::open_at;
use crate::facts::labels::{Labelled, Labels, Place};
use crate::facts::requests::{Endpoint, Requests};
use crate::facts::sockets::{Group, Sockets};
use crate::statistics::{ratio, share};

/// How many times as much is another load.
const TIMES: f64 = 2.0;
/// Of requests a second, and by so many.
const OFTENER: f64 = 1.5;
const FEW_A_SECOND: f64 = 5.0;
/// The same of the busiest second over the mean, which differs by chance.
const BURSTIER: f64 = 1.5;
/// Seconds, and requests in each, of which there is a busiest one that says something.
const ENOUGH_SECONDS: usize = 5;
const ENOUGH_A_SECOND: f64 = 20.0;
/// Of a second, the part that was followed at least: of less, chance makes the busiest one.
const SHORTEST_NS: u64 = 500_000_000;
/// Connections, and requests under way: of fewer the difference is none.
const FEW_CONNECTIONS: f64 = 5.0;
const FEW_AT_ONCE: f64 = 1.0;
/// Of the requests: those that begin a connection, that ask for the same, that fail.
const OTHERWISE: f64 = 0.2;
const ALIKE: f64 = 0.7;
/// Of each thing that is asked for, those that were looked at on average: of fewer, chance makes the parts.
const ENOUGH_OF_EACH: f64 = 10.0;
const FAIL: f64 = 0.05;
/// A round trip that is another: so many times as long, and by so much, s.
const FARTHER: f64 = 5.0;
const FELT: f64 = 1e-3;

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Requests a second.
    PerSecond,
    /// How many, or how many times as many.
    Number,
    /// A share, from 0 to 1.
    Share,
    /// Seconds.
    Seconds,
}

/// One thing that clients do, in production and under the load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trait {
    /// Stable id.
    pub id: String,
    /// In words.
    pub what: String,
    /// What the numbers are of.
    pub unit: Unit,
    /// In production.
    pub production: f64,
    /// Under the load.
    pub load: f64,
    /// Whether they are so different that what the load finds need not be true of production.
    pub is_unlike: bool,
}

/// What was compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Likeness {
    /// All that both recordings tell.
    pub traits: Vec<Trait>,
    /// What could not be compared, and why.
    pub not_compared: Vec<String>,
}

impl Likeness {
    /// Those in which it is another load.
    pub fn unlike(&self) -> impl Iterator<Item = &Trait> {
        self.traits.iter().filter(|it| it.is_unlike)
    }
}

/// How a service is asked, as a recording of it tells.
pub struct Asked {
    rate: f64,
    burst: Option<f64>,
    connections: f64,
    first: f64,
    at_once: f64,
    round_trip: Option<f64>,
    place: Option<Place>,
}

/// Compares how a service is asked in production with how it is under a load.
pub fn likeness(production: &Asked, load: &Case) -> Likeness {
    let mut all = Likeness::default();
    match Asked::of(load) {
        Ok(load) => all.compare(production, &load),
        Err(why) => all.not_compared.push(format!("all: {why}")),
    }
    all
}

fn times(production: f64, load: f64) -> bool {
    production.max(load) >= TIMES * production.min(load)
}

impl Likeness {
    fn compare(&mut self, production: &Asked, load: &Asked) {
        self.add(("rate", "requests a second", Unit::PerSecond), (production.rate, load.rate), |production, load| {
            production.max(load) >= OFTENER * production.min(load) && (production - load).abs() >= FEW_A_SECOND
                || times(production, load)
        });
        self.may_add(
            ("burst", "the busiest second, times the mean one", Unit::Number),
            (production.burst, load.burst),
            |production, load| ratio(production.max(load), production.min(load)) >= BURSTIER,
            "needs five seconds of 20 requests",
        );
        let connections = (production.connections, load.connections);
        self.add(("connections", "connections open at a time", Unit::Number), connections, |production, load| {
            times(production, load) && (production - load).abs() >= FEW_CONNECTIONS
        });
        self.add(
            ("first", "requests that begin a connection", Unit::Share),
            (production.first, load.first),
            |production, load| (production - load).abs() >= OTHERWISE,
        );
        self.add(
            ("at-once", "requests under way at once", Unit::Number),
            (production.at_once, load.at_once),
            |production, load| times(production, load) && production.max(load) >= FEW_AT_ONCE,
        );
        self.may_add(
            ("round-trip", "round trip to clients", Unit::Seconds),
            (production.round_trip, load.round_trip),
            |production, load| {
                (production - load).abs() >= FELT && ratio(production.max(load), production.min(load)) >= FARTHER
            },
            "nothing was on its way when connections were looked at",
        );
        self.add_labels(production.place.as_ref(), load.place.as_ref());
    }

    fn add(
        &mut self,
        (id, what, unit): (&str, &str, Unit),
        (production, load): (f64, f64),
        is_unlike: impl FnOnce(f64, f64) -> bool,
    ) {
        let is_unlike = is_unlike(production, load);
        self.traits.push(Trait { id: id.into(), what: what.into(), unit, production, load, is_unlike });
    }

    fn may_add(
        &mut self,
        named: (&str, &str, Unit),
        values: (Option<f64>, Option<f64>),
        is_unlike: impl FnOnce(f64, f64) -> bool,
        needs: &str,
    ) {
        match values {
            (Some(production), Some(load)) => self.add(named, (production, load), is_unlike),
            _ => self.not_compared.push(format!("{}: {needs}", named.1)),
        }
    }

    /// What is asked for, and whether it is answered.
    fn add_labels(&mut self, production: Option<&Place>, load: Option<&Place>) {
        let (Some(production), Some(load)) = (production, load) else {
            let why = "what is asked: the recording of production has no labels (--requests), or nothing has one here";
            return self.not_compared.push(why.into());
        };
        let tells = |place: &Place| place.seen >= ENOUGH_OF_EACH * place.labels.len() as f64;
        if !tells(production) || !tells(load) {
            let why = "what is asked: so much of different kinds was asked that too little of each was looked at";
            return self.not_compared.push(why.into());
        }
        self.add(("asked", "what is asked in production", Unit::Share), (1.0, alike(production, load)), |_, alike| {
            alike < ALIKE
        });
        let named = ("asked-time", "of what clients wait for, what is asked as often in both", Unit::Share);
        self.add(named, (1.0, alike_by_time(production, load).min(alike_by_time(load, production))), |_, alike| {
            alike < ALIKE
        });
        let failed = |place: &Place| share(place.outcomes.failed + place.outcomes.refused, place.outcomes.all);
        self.add(
            ("failed", "answers that report an error", Unit::Share),
            (failed(production), failed(load)),
            |production, load| (production - load).abs() >= FAIL,
        );
    }
}

/// For each thing that is asked for on one side, how much of all it is there, and how much on the other.
fn in_both<'l>(one: &'l Place, other: &Place) -> impl Iterator<Item = (&'l Labelled, f64, f64)> {
    let part = |place: &Place, label: &Labelled| share(label.outcomes.all, place.outcomes.all);
    let there: BTreeMap<String, f64> =
        other.labels.iter().map(|label| (label.label.clone(), part(other, label))).collect();
    one.labels.iter().map(move |label| (label, part(one, label), there.get(&label.label).copied().unwrap_or(0.0)))
}

/// Of the requests, those for which there is one for the same on the other side.
fn alike(one: &Place, other: &Place) -> f64 {
    in_both(one, other).map(|(_, here, there)| here.min(there)).sum()
}

/// Of the time that clients wait on one side, that for requests of which the other side has as many, as a part of all: what is rare may
/// be most of the work.
fn alike_by_time(one: &Place, other: &Place) -> f64 {
    let all: f64 = one.labels.iter().map(|label| one.share_of_time(label)).sum();
    let as_often = |(label, here, there): (&Labelled, f64, f64)| one.share_of_time(label) * share(there, here);
    share(in_both(one, other).map(as_often).sum(), all)
}

impl Asked {
    /// At the port where clients wait most.
    ///
    /// # Errors
    /// It does not tell, in words.
    pub fn of(case: &Case) -> Result<Self, String> {
        let requests = case.fact::<Requests>().map_err(|gap| gap.why.clone())?;
        let endpoint = requests.main().ok_or("no exchange with clients was seen over TCP")?;
        let followed = if requests.followed_ns > 0.0 { requests.followed_ns } else { case.length_ns() };
        let labels = case.fact::<Labels>().ok();
        let sockets = case.fact::<Sockets>().ok();
        let is_it = |group: &&Group| group.accepted && group.name == endpoint.name;
        let group = sockets.as_ref().and_then(|sockets| sockets.groups.iter().find(is_it));
        Ok(Self {
            rate: ratio(endpoint.began, followed / 1e9),
            burst: burst(case, endpoint),
            connections: open_at(case, endpoint.port),
            first: share(endpoint.first_read.count, endpoint.response.count),
            at_once: requests.at_once(&endpoint.response),
            round_trip: group.and_then(|group| group.srtt_ns).map(|ns| ns / 1e9),
            place: labels
                .and_then(|labels| labels.of(true, &endpoint.name).cloned())
                .filter(|it| !it.labels.is_empty()),
        })
    }

    /// Whether it tells what is asked for, too.
    pub fn is_labelled(&self) -> bool {
        self.place.is_some()
    }
}

/// How many times as many requests began in the busiest stretch that was followed as in the mean one, by its length.
fn burst(case: &Case, endpoint: &Endpoint) -> Option<f64> {
    let is_here = |row: &&Exchange| row.is_accepted() && row.port == endpoint.port && row.stage == "response";
    let mut began: BTreeMap<u64, u64> = BTreeMap::new();
    for row in case.recording.rows::<Exchange>().iter().filter(is_here) {
        *began.entry(row.t_ns).or_default() += row.began;
    }
    let windows = case.recording.rows::<ExchangeWindow>().iter().filter(|window| window.length_ns >= SHORTEST_NS);
    let rate = |window: &ExchangeWindow| {
        ratio(began.get(&window.t_ns).map_or(0.0, |began| *began as f64), window.length_ns as f64 / 1e9)
    };
    let rates: Vec<f64> = windows.map(rate).collect();
    let mean = ratio(rates.iter().sum(), rates.len() as f64);
    (rates.len() >= ENOUGH_SECONDS && mean >= ENOUGH_A_SECOND).then(|| rates.iter().copied().fold(0.0, f64::max) / mean)
}

#[cfg(test)]
#[path = "likeness/tests.rs"]
mod tests;
