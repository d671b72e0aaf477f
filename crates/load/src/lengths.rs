// SPDX-License-Identifier: Apache-2.0
//! Lengths of time by the million, and the percentiles of them that are not chance.

use std::time::Duration;

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest length that is told from longer ones.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// The shortest lengths that are told from each other.
const SHORTEST_NS: u64 = 1000;
/// Answers beyond a percentile without which it is chance.
const BEYOND: f64 = 10.0;

/// Lengths of time, each right to one in a hundred and at least to 1 us. They grow with the longest, so that those of a
/// second take some 10 kB.
#[derive(Clone, Debug)]
pub struct Lengths(Histogram<u64>);

impl Default for Lengths {
    #[allow(clippy::expect_used, reason = "the bounds are constants, which the library accepts or not in every run")]
    fn default() -> Self {
        let mut lengths = Histogram::new_with_bounds(SHORTEST_NS, 2 * SHORTEST_NS, 2).expect("bounds of lengths");
        lengths.auto(true);
        Self(lengths)
    }
}

impl Lengths {
    /// Adds one.
    pub fn add(&mut self, length: Duration) {
        let ns = u64::try_from(length.as_nanos()).unwrap_or(LONGEST_NS).min(LONGEST_NS);
        // It grows with what it is given.
        let _ = self.0.record(ns);
    }

    /// Adds so many of one length.
    pub fn add_many(&mut self, length: Duration, count: u64) {
        let ns = u64::try_from(length.as_nanos()).unwrap_or(LONGEST_NS).min(LONGEST_NS);
        let _ = self.0.record_n(ns, count); // as above
    }

    /// Adds those of another.
    pub fn add_all(&mut self, other: &Self) {
        // It grows with what is added, so that nothing can be out of its range.
        let _ = self.0.add(&other.0);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The length under which a share of them lies, s; none where there are none.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(share) as f64 / 1e9)
    }

    /// Their mean, s; none where there are none.
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.mean() / 1e9)
    }

    /// The mean of the logarithms of seconds, and their variance; none where there are none. Where half of them take one time and half
    /// another, it does not jump from one to the other as a median does.
    pub fn logarithms(&self) -> Option<(f64, f64)> {
        let (mut sum, mut squares) = (0.0, 0.0);
        for at in self.0.iter_recorded() {
            let (value, count) = ((at.value_iterated_to().max(1) as f64 / 1e9).ln(), at.count_at_value() as f64);
            (sum, squares) = (sum + value * count, squares + value * value * count);
        }
        let count = self.count() as f64;
        let mean = sum / count;
        (count > 0.0).then(|| (mean, (squares / count - mean * mean).max(0.0)))
    }

    /// How many are longer.
    pub fn longer_than(&self, limit: Duration) -> u64 {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(LONGEST_NS);
        self.count() - self.0.count_between(0, limit)
    }

    /// The lengths that were met, the shortest and the longest that are not told apart and how many they were, ns.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.0.iter_recorded().map(|bin| {
            let at = bin.value_iterated_to();
            (self.0.lowest_equivalent(at), self.0.highest_equivalent(at), bin.count_at_value())
        })
    }

    /// Lengths in s and the share of all that are no longer, as a curve of at most some hundred points.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for point in self.0.iter_quantiles(10) {
            let (length, share) = (point.value_iterated_to() as f64 / 1e9, point.quantile());
            // Many shares end within one length: the largest of them is all that it says.
            match points.last_mut().filter(|last| last.0 == length) {
                Some(last) => last.1 = share,
                None => points.push((length, share)),
            }
        }
        points
    }
}

/// Percentiles in seconds; those that too few answers lie beyond are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Half of the answers took no longer.
    pub p50: Option<f64>,
    /// Nine in ten.
    pub p90: Option<f64>,
    /// 99 in a hundred.
    pub p99: Option<f64>,
    /// 999 in a thousand.
    pub p999: Option<f64>,
    /// The longest.
    pub longest: Option<f64>,
}

impl Percentiles {
    pub(crate) fn of(lengths: &Lengths) -> Self {
        let known = |share: f64| {
            // A tenth of a hundred is a bit less than ten.
            let is_known = lengths.count() as f64 * (1.0 - share) >= BEYOND - 1e-6;
            if is_known { lengths.quantile(share) } else { None }
        };
        Self {
            p50: lengths.quantile(0.5).filter(|_| lengths.count() as f64 >= BEYOND),
            p90: known(0.9),
            p99: known(0.99),
            p999: known(0.999),
            longest: lengths.quantile(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        let mut lengths = Lengths::default();
        assert_eq!(lengths.quantile(0.5), None);
        (1..=1000).for_each(|ms| lengths.add(Duration::from_millis(ms)));
        let p99 = lengths.quantile(0.99).unwrap();
        assert!((0.98..1.0).contains(&p99), "{p99}");
        let longer = lengths.longer_than(Duration::from_millis(900));
        assert!((90..=110).contains(&longer), "{longer}");
        let curve = lengths.curve();
        assert!(curve.is_sorted_by_key(|point| point.1) && curve.len() < 200, "{}", curve.len());
        let half = curve.iter().find(|point| point.1 >= 0.5).unwrap();
        assert!(
            (half.0 - lengths.quantile(0.5).unwrap()).abs() < 0.01,
            "the curve and the percentile are one: {half:?}"
        );
        lengths.add(Duration::MAX);
        assert_eq!(lengths.count(), 1001);
    }
}
