// SPDX-License-Identifier: Apache-2.0
//! The centre of a few paired measurements, and how sure it is.
//!
//! The interval is that of the Wilcoxon signed-rank test: it asks for no normal distribution, only
//! for one that is about symmetric (ratios are compared by their logarithms), it is exact for small
//! numbers, and one wild pair among eight widens it but does not break it. The centre that belongs
//! to it is the median of all pairwise means (Hodges and Lehmann).

use serde::{Deserialize, Serialize};

/// The share of intervals that hold the truth.
const WANTED: f64 = 0.95;

/// A centre with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Median of the pairwise means.
    pub centre: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Share of such intervals that hold the truth; under 0.95 where there are fewer than six values.
    pub confidence: f64,
}

impl Estimate {
    /// Whether it may be judged: fewer than six values give no interval of 95 %.
    pub fn is_sure(&self) -> bool {
        self.confidence >= WANTED
    }
}

/// Of values as they are.
pub fn of_values(values: &[f64]) -> Option<Estimate> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mut means: Vec<f64> =
        values.iter().enumerate().flat_map(|(i, a)| values[i..].iter().map(move |b| f64::midpoint(*a, *b))).collect();
    means.sort_by(f64::total_cmp);
    let (outer, confidence) = cut(values.len());
    Some(Estimate { centre: middle(&means), low: means[outer], high: means[means.len() - 1 - outer], confidence })
}

/// Of ratios `with / without`, by their logarithms: twice as much and half as much are equally far.
pub fn of_ratios(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let logs: Vec<f64> = pairs.iter().map(|(without, with)| (with / without).ln()).collect();
    let e = of_values(&logs)?;
    Some(Estimate { centre: e.centre.exp(), low: e.low.exp(), high: e.high.exp(), ..e })
}

/// The plain median.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

fn middle(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// How many of the sorted pairwise means lie outside the interval on each side, and its confidence.
fn cut(values: usize) -> (usize, f64) {
    let sums = rank_sums(values);
    let all: f64 = sums.iter().sum();
    let mut below = sums[0];
    let mut outer = 0;
    while outer + 1 < sums.len() && 1.0 - 2.0 * (below + sums[outer + 1]) / all >= WANTED {
        outer += 1;
        below += sums[outer];
    }
    (outer, (1.0 - 2.0 * below / all).max(0.0))
}

/// Number of ways in which signed ranks 1 to `n` add up to each sum: the exact distribution of the
/// signed-rank statistic, times 2^n.
fn rank_sums(n: usize) -> Vec<f64> {
    let mut ways = vec![0.0; n * (n + 1) / 2 + 1];
    ways[0] = 1.0;
    for rank in 1..=n {
        for sum in (rank..ways.len()).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signed_rank_distribution_is_the_published_one() {
        // Tables of the test: two-sided 5 % rejects up to 0 for n = 6, 3 for n = 8, 8 for n = 10.
        assert_eq!([6, 8, 10].map(|n| cut(n).0), [0, 3, 8]);
        assert!((cut(6).1 - 0.96875).abs() < 1e-12 && (cut(8).1 - 0.9609375).abs() < 1e-12);
        assert_eq!(rank_sums(3), [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn few_values_give_their_range_and_are_not_sure() {
        let e = of_values(&[1.0, 3.0, 2.0]).unwrap();
        assert_eq!((e.centre, e.low, e.high, e.confidence), (2.0, 1.0, 3.0, 0.75));
        assert!(!e.is_sure() && of_values(&[1.0; 6]).unwrap().is_sure());
        assert_eq!(of_values(&[5.0]).unwrap().confidence, 0.0);
        assert!(of_values(&[]).is_none() && of_values(&[f64::NAN]).is_none());
    }

    #[test]
    fn ratios_are_symmetric_and_one_wild_pair_does_not_carry_the_centre() {
        let e = of_ratios(&[(1.0, 2.0), (2.0, 1.0)]).unwrap();
        assert!((e.centre - 1.0).abs() < 1e-12);
        let mut pairs = vec![(10.0, 10.1); 7];
        pairs.push((10.0, 100.0));
        let e = of_ratios(&pairs).unwrap();
        assert!((e.centre - 1.01).abs() < 1e-9 && (e.low - 1.01).abs() < 1e-9, "{e:?}");
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        // A fixed pseudo-random walk through the uniform distribution: no seed, no chance.
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let trials = 4000;
        let held = (0..trials)
            .filter(|_| {
                let values: Vec<f64> = (0..8).map(|_| uniform()).collect();
                let e = of_values(&values).unwrap();
                e.low <= 0.5 && 0.5 <= e.high
            })
            .count();
        let share = held as f64 / f64::from(trials);
        assert!((share - 0.9609).abs() < 0.015, "{share}");
    }
}
