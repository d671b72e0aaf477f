// SPDX-License-Identifier: Apache-2.0
//! How long requests took by what was asked, where labels were wanted of the capture.

use std::collections::BTreeMap;

use recording::tables;

use super::listening::Listening;
use super::requests::{Lengths, weights};
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::{ratio, share};

/// Exchanges of a label that were looked at, from which on their mean says something: of fewer, one that was unlucky would
/// come first.
pub(crate) const ENOUGH: f64 = 5.0;

/// All requests of one label.
#[derive(Clone, Debug, Default)]
pub struct Labelled {
    /// `GET /items/*`.
    pub label: String,
    /// The protocol that it is of.
    pub protocol: String,
    /// How many were looked at.
    pub seen: f64,
    /// The response times of all that they stand for.
    pub lengths: Lengths,
    /// What their answers say.
    pub outcomes: Outcomes,
}

/// Answers by what they say of themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcomes {
    /// All with a label: of those that are too short to say so, or that could not be read, none is taken for a failure.
    pub all: f64,
    /// Of them, those that whoever asked is to blame for.
    pub refused: f64,
    /// Of them, those that say that the service has failed.
    pub failed: f64,
}

impl Outcomes {
    fn add(&mut self, outcome: &str, count: f64) {
        match outcome {
            "refused" => self.refused += count,
            "failed" => self.failed += count,
            _ => {}
        }
        self.all += count;
    }

    /// Share of those that failed.
    pub fn failed_share(&self) -> f64 {
        share(self.failed, self.all)
    }
}

/// The labels at one port, or of what one peer is asked.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Clients ask.
    pub accepted: bool,
    /// Name as [`super::requests::Endpoint`] has it.
    pub name: String,
    /// The slowest first, by their mean; then those of which too few were seen.
    pub labels: Vec<Labelled>,
    /// Those without a label, and why: number by protocol.
    pub unlabelled: BTreeMap<String, f64>,
    /// All that were looked at.
    pub seen: f64,
    /// All that they stand for.
    pub count: f64,
    /// Their response times, ns.
    pub sum_ns: f64,
    /// What their answers say.
    pub outcomes: Outcomes,
}

/// The labels of the window.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// Those with clients first, the busiest first.
    pub places: Vec<Place>,
}

impl Fact for Labels {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let rows = case.recording.rows::<tables::Label>();
        if rows.is_empty() {
            return Err(Gap::not_recorded("label", "requests were not labelled: that was not asked for (--requests)"));
        }
        let mut places: BTreeMap<(bool, u32, &str), Vec<&tables::Label>> = BTreeMap::new();
        for row in rows {
            places.entry((row.is_accepted(), row.port, row.peer.as_str())).or_default().push(row);
        }
        let (listening, weights) = (case.fact::<Listening>()?, weights::of(case));
        let of = |((accepted, port, peer), rows): ((bool, u32, &str), Vec<&tables::Label>)| {
            let name = if accepted { listening.name_at(port) } else { peer.to_string() };
            Place { accepted, name, ..Place::of(&rows, &weights) }
        };
        let mut places: Vec<Place> = places.into_iter().map(of).collect();
        places.sort_by(|a, b| b.accepted.cmp(&a.accepted).then(b.count.total_cmp(&a.count)));
        Ok(Self { places })
    }
}

impl Labels {
    /// Those of an endpoint.
    pub fn of(&self, accepted: bool, name: &str) -> Option<&Place> {
        self.places.iter().find(|place| place.accepted == accepted && place.name == name)
    }
}

impl Place {
    /// Weighted as the stretches in which exchanges were followed are.
    fn of(rows: &[&tables::Label], weights: &BTreeMap<u64, f64>) -> Self {
        let mut place = Self::default();
        let mut labels: BTreeMap<(&str, &str), Labelled> = BTreeMap::new();
        for row in rows {
            let weight = weights.get(&row.t_ns).copied().unwrap_or(1.0);
            let count = row.count as f64 * weight;
            place.seen += row.seen as f64;
            place.count += count;
            place.sum_ns += row.sum_ns as f64 * weight;
            if row.label.is_empty() {
                *place.unlabelled.entry(row.protocol.clone()).or_default() += count;
                continue;
            }
            let labelled = labels.entry((row.protocol.as_str(), row.label.as_str())).or_default();
            labelled.seen += row.seen as f64;
            labelled.outcomes.add(&row.outcome, count);
            place.outcomes.add(&row.outcome, count);
            labelled.lengths.add_weighted(weight, (row.count, row.sum_ns), &row.length_ns, &row.counts);
        }
        let named = labels.into_iter().map(|((protocol, label), labelled)| Labelled {
            label: label.to_string(),
            protocol: protocol.to_string(),
            ..labelled
        });
        place.labels = named.collect();
        place.labels.sort_by(|a, b| {
            let few = |labelled: &Labelled| labelled.seen < ENOUGH;
            few(a).cmp(&few(b)).then(b.lengths.mean_ns().total_cmp(&a.lengths.mean_ns()))
        });
        place
    }

    /// Share of the time of all requests here that is in those of a label.
    pub fn share_of_time(&self, labelled: &Labelled) -> f64 {
        share(labelled.lengths.sum_ns, self.sum_ns)
    }

    /// Of how many exchanges one was looked at, on average.
    pub fn one_in(&self) -> f64 {
        ratio(self.count, self.seen)
    }

    /// Share of exchanges without a label.
    pub fn unlabelled_share(&self) -> f64 {
        share(self.unlabelled.values().sum(), self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn the_slowest_label_comes_first_and_one_unlucky_request_does_not() {
        let recording = parse(
            "meta target.listen=[\"tcp 0.0.0.0:80\"]
             label t_ns=1 role=accepted port=80 protocol=http label=\"GET /a\" seen=90 count=900 sum_ns=900e6 length_ns=[1000000] counts=[900]
             label t_ns=2 role=accepted port=80 protocol=http label=\"GET /slow\" seen=4 count=4 sum_ns=80e6 length_ns=[20000000] counts=[4]
             label t_ns=3 role=accepted port=80 protocol=http label=\"GET /slow\" outcome=failed seen=1 count=1 sum_ns=20e6 length_ns=[20000000] counts=[1]
             label t_ns=3 role=accepted port=80 protocol=http label=\"GET /once\" seen=1 count=1 sum_ns=90e6 length_ns=[90000000] counts=[1]
             label t_ns=3 role=accepted port=80 protocol=tls seen=5 count=95 sum_ns=10e6 length_ns=[100000] counts=[95]
             label t_ns=3 role=made peer=10.0.0.9:1 protocol=mysql label=\"SELECT t\" seen=5 count=5 sum_ns=5 length_ns=[1] counts=[5]",
        )
        .unwrap();
        let labels = Case::new(&recording).fact::<Labels>().unwrap();
        let clients = labels.of(true, "tcp 0.0.0.0:80").unwrap();
        let order: Vec<&str> = clients.labels.iter().map(|labelled| labelled.label.as_str()).collect();
        assert_eq!(order, ["GET /slow", "GET /a", "GET /once"]);
        assert_eq!((clients.labels[0].lengths.quantile_ns(0.5), clients.labels[0].lengths.count), (20e6, 5.0));
        assert!((clients.share_of_time(&clients.labels[0]) - 100.0 / 1100.0).abs() < 1e-9);
        assert_eq!(clients.outcomes, Outcomes { all: 906.0, refused: 0.0, failed: 1.0 });
        assert!((clients.unlabelled_share() - 95.0 / 1001.0).abs() < 1e-9);
        assert!(labels.of(false, "10.0.0.9:1").is_some() && labels.of(true, "10.0.0.9:1").is_none());
    }

    #[test]
    fn no_labels_no_fact() {
        assert!(Case::new(&parse("").unwrap()).fact::<Labels>().is_err());
    }
}
