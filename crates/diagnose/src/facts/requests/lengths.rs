// SPDX-License-Identifier: Apache-2.0
//! Lengths of time, and which of them are long beside the others.

use std::collections::BTreeMap;

use crate::statistics::{ratio, share};

/// Lengths of time, each known within 3 %.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lengths {
    /// How many.
    pub count: f64,
    /// Added up, ns.
    pub sum_ns: f64,
    bins: BTreeMap<u64, f64>,
}

impl Lengths {
    /// Adds what stands for so many times as much.
    pub(in crate::facts) fn add_weighted(
        &mut self,
        weight: f64,
        (count, sum_ns): (u64, u64),
        lengths: &[u64],
        counts: &[u64],
    ) {
        self.count += count as f64 * weight;
        self.sum_ns += sum_ns as f64 * weight;
        for (length_ns, count) in lengths.iter().zip(counts) {
            *self.bins.entry(*length_ns).or_default() += *count as f64 * weight;
        }
    }

    /// The length that a share of all are not longer than, ns; 0 where there is none.
    pub fn quantile_ns(&self, part: f64) -> f64 {
        let all: f64 = self.bins.values().sum();
        let mut below = 0.0;
        for (length_ns, count) in &self.bins {
            below += count;
            if below >= all * part {
                return *length_ns as f64;
            }
        }
        0.0
    }

    /// Lengths that were met, ascending, ns, and the share of all that are not longer.
    pub fn shares(&self) -> Vec<(f64, f64)> {
        let all: f64 = self.bins.values().sum();
        let mut below = 0.0;
        let mut share_of = |(length_ns, count): (&u64, &f64)| {
            below += count;
            (*length_ns as f64, share(below, all))
        };
        self.bins.iter().map(&mut share_of).collect()
    }

    /// Lengths, ns, and how many are of each.
    pub fn counts(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.bins.iter().map(|(length_ns, count)| (*length_ns as f64, *count))
    }

    /// On average, ns.
    pub fn mean_ns(&self) -> f64 {
        ratio(self.sum_ns, self.count)
    }

    /// How many are of this length or longer.
    pub fn count_from(&self, from_ns: f64) -> f64 {
        self.bins.iter().filter(|(length_ns, _)| **length_ns as f64 >= from_ns).map(|(_, count)| count).sum()
    }

    /// Time in those that are not much longer than half of them, ns: a few long polls take more than all other answers.
    pub(crate) fn usual_ns(&self) -> f64 {
        let most_ns = much_longer_ns(self.quantile_ns(0.5));
        let usual = self.bins.iter().filter(|(length_ns, _)| **length_ns as f64 <= most_ns);
        usual.map(|(length_ns, count)| *length_ns as f64 * count).sum()
    }

    /// The length that most of their time has, ns, and how much of it: in two neighbouring bins, for what takes the same time each
    /// time is seldom in one.
    pub fn most_alike(&self) -> (f64, f64) {
        let around = |from: &u64| {
            let bins = self.bins.range(from..=&((*from as f64 * NEIGHBOUR) as u64));
            let (ns, count) =
                bins.fold((0.0, 0.0), |sum, (length_ns, count)| (sum.0 + *length_ns as f64 * count, sum.1 + count));
            (ratio(ns, count), ns)
        };
        let (length_ns, ns) = self.bins.keys().map(around).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
        (length_ns, share(ns, self.counts().map(|(length_ns, count)| length_ns * count).sum()))
    }

    /// Share of all their time that is in those of this length or longer.
    pub fn share_of_time_from(&self, from_ns: f64) -> f64 {
        share(self.time_from_ns(from_ns), self.time_from_ns(0.0))
    }

    /// Time in those that take so long or longer, ns.
    pub fn time_from_ns(&self, from_ns: f64) -> f64 {
        let longer = self.bins.iter().filter(|(length_ns, _)| **length_ns as f64 >= from_ns);
        longer.map(|(length_ns, count)| *length_ns as f64 * count).sum()
    }
}

/// A bin's length over that of the one below it, at most.
const NEIGHBOUR: f64 = 1.07;

/// An answer that takes so long is late, as the looks at connections count them, ns.
pub const LATE_NS: f64 = recording::tables::connection::LATE_NS as f64;

/// The length from which on answers are slow beside the others, ns: late, and much longer than half of them.
pub fn slow_from_ns(half_ns: f64) -> f64 {
    LATE_NS.max(much_longer_ns(half_ns))
}

/// The length from which on answers are much longer than half of them, ns: such are another kind.
fn much_longer_ns(half_ns: f64) -> f64 {
    half_ns * 10.0
}
