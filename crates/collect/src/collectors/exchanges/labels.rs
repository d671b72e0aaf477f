// SPDX-License-Identifier: Apache-2.0
//! What was asked, by its label: of some exchanges, picked at random, the label and the length, added up by slice.

use std::collections::{BTreeMap, BTreeSet};

use recording::{role, tables};

use crate::labels::{self, Named, Outcome};
use crate::probes::exchanges::{Histogram, Opening, Request};

/// Exchanges that are labelled between two looks at the ring, which come every 50 ms: some 2 ms of CPU time a second, and a
/// twentieth of the ring.
const A_LOOK: u32 = 200;
/// Of so many exchanges one is labelled, at the least.
const MOST_SKIPPED: u32 = 1 << 16;
/// Labels that are told apart at one port or with one peer; the rest is `others`.
const MOST_LABELS: usize = 200;
const OTHERS: &str = "others";

/// One port at which clients ask, or one peer: as the rows of exchanges name it.
type Place = (&'static str, u32, String);

/// Exchanges of one label in a slice.
#[derive(Default)]
struct Sum {
    seen: u64,
    pipelines: u64,
    lengths: Histogram,
}

/// The labels of a capture.
#[derive(Default)]
pub struct Labels {
    /// Labels that were met, by place.
    known: BTreeMap<Place, BTreeSet<String>>,
    /// What was added up in this slice.
    slice: BTreeMap<(Place, Named, Outcome), Sum>,
    /// Seen since the last look.
    seen: u32,
    every: u32,
}

impl Labels {
    /// Adds an exchange, and says its label; empty = it has none.
    pub fn add(&mut self, request: &Request) -> String {
        let Some(opening) = &request.opening else { return String::new() };
        let named = labels::of(opening.bytes());
        let label = named.label.clone();
        if opening.weight > 0 {
            self.count(request, opening, named);
        }
        label
    }

    fn count(&mut self, request: &Request, opening: &Opening, mut named: Named) {
        self.seen += 1;
        let place = place(request, opening);
        let known = self.known.entry(place.clone()).or_default();
        if known.len() < MOST_LABELS {
            known.insert(named.label.clone());
        } else if !named.label.is_empty() && !known.contains(&named.label) {
            named.label = OTHERS.into();
        }
        let outcome = opening.answer.map_or(Outcome::Unknown, |answer| labels::outcome(named.protocol, &answer));
        let is_pipeline = labels::is_pipeline(named.protocol, opening.bytes());
        let sum = self.slice.entry((place, named, outcome)).or_default();
        sum.seen += 1;
        sum.pipelines += u64::from(is_pipeline);
        sum.lengths.add(request.ended_ns.saturating_sub(request.began_ns), u64::from(opening.weight));
    }

    /// After a look at the ring: of how many exchanges one is to be labelled from now on, so that a look finds about as many as it
    /// may.
    pub fn pace(&mut self) -> u32 {
        let seen = std::mem::take(&mut self.seen);
        let every = self.every.max(1);
        self.every = match seen {
            _ if seen > A_LOOK => every.saturating_mul(seen.div_ceil(A_LOOK)).min(MOST_SKIPPED),
            _ if seen < A_LOOK / 4 => (every / 2).max(1),
            _ => every,
        };
        self.every
    }

    /// The rows of the slice that ends.
    pub fn rows(&mut self, t_ns: u64) -> Vec<tables::Label> {
        let row = |(((role, port, peer), named, outcome), sum): ((Place, Named, Outcome), Sum)| {
            let (length_ns, counts) = sum.lengths.bins.into_iter().unzip();
            tables::Label {
                t_ns,
                role: role.into(),
                port,
                peer,
                protocol: named.protocol.into(),
                label: named.label,
                outcome: outcome.word().into(),
                seen: sum.seen,
                pipelines: sum.pipelines,
                count: sum.lengths.count,
                sum_ns: sum.lengths.sum_ns,
                length_ns,
                counts,
            }
        };
        std::mem::take(&mut self.slice).into_iter().map(row).collect()
    }
}

fn place(request: &Request, opening: &Opening) -> Place {
    match request.accepted {
        true if opening.is_apart => (role::ACCEPTED, request.port.into(), String::new()),
        false if opening.is_apart => (role::MADE, 0, request.peer.to_string()),
        _ => (role::MADE, 0, OTHERS.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str, ms: u64, weight: u32) -> Request {
        let mut bytes = [0; 128];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        let opening = Opening { weight, is_apart: true, length: text.len(), bytes, answer: None };
        Request {
            opening: Some(opening),
            began_ns: 5,
            ended_ns: 5 + ms * 1_000_000,
            ..crate::probes::exchanges::nobody()
        }
    }

    #[test]
    fn lengths_add_up_by_label_and_weight() {
        let mut labels = Labels::default();
        let said = labels.add(&request("GET /slow?x HTTP/1.1\r\n", 50, 3));
        labels.add(&request("GET /slow?y HTTP/1.1\r\n", 70, 3));
        labels.add(&request("GET /fast HTTP/1.1\r\n", 1, 2));
        assert_eq!(labels.add(&request("GET /burst HTTP/1.1\r\n", 1, 0)), "GET /burst", "told, and counted nowhere");
        labels.add(&request("\x17\x03\x03\0\x20", 1, 1));
        let rows = labels.rows(9);
        let told: Vec<_> =
            rows.iter().map(|row| (row.label.as_str(), row.seen, row.count, row.sum_ns / 1_000_000)).collect();
        assert_eq!(said, "GET /slow");
        assert_eq!(told, [("GET /fast", 1, 2, 2), ("GET /slow", 2, 6, 360), ("", 1, 1, 1)]);
        assert_eq!((rows[0].role.as_str(), rows[0].port, rows[2].protocol.as_str()), ("accepted", 80, "tls"));
        assert!(labels.rows(10).is_empty(), "each is told once");
    }

    #[test]
    fn answers_that_failed_are_rows_of_their_own() {
        let mut labels = Labels::default();
        for answer in [&b"HTTP/1.1 200"[..], b"HTTP/1.1 503", b"HTTP/1.1 503", b"HTTP/1.1 404"] {
            let mut asked = request("GET / HTTP/1.1\r\n", 1, 1);
            asked.opening.as_mut().unwrap().answer = answer.try_into().ok();
            labels.add(&asked);
        }
        let rows = labels.rows(9);
        let told: Vec<_> = rows.iter().map(|row| (row.label.as_str(), row.outcome.as_str(), row.count)).collect();
        assert_eq!(told, [("GET /", "ok", 1), ("GET /", "refused", 1), ("GET /", "failed", 2)]);
    }

    #[test]
    fn labels_are_bounded() {
        let mut labels = Labels::default();
        for first in 'a'..='z' {
            for second in 'a'..='z' {
                labels.add(&request(&format!("GET /{first}{second} HTTP/1.1\r\n"), 1, 1));
            }
        }
        let rows = labels.rows(1);
        let others = rows.iter().find(|row| row.label == OTHERS).unwrap();
        assert_eq!((rows.len(), others.seen), (MOST_LABELS + 1, 26 * 26 - MOST_LABELS as u64));
    }

    #[test]
    fn the_pace_follows_the_load() {
        let mut labels = Labels::default();
        let mut after = |seen| {
            labels.seen = seen;
            labels.pace()
        };
        assert_eq!((after(100), after(2_000), after(150), after(900), after(0), after(0)), (1, 10, 10, 50, 25, 12));
    }
}
