// SPDX-License-Identifier: Apache-2.0
//! Interleaving: each round measures every side once, in shuffled order, so that a host that slowly
//! changes changes all of them. A round in which the host was disturbed is measured again.

use std::hash::{BuildHasher, Hasher, RandomState};

use anyhow::Result;

use super::row::Row;
use crate::cell::Cell;
use crate::disturbance::Watch;
use crate::stop::Stop;

/// What the rounds of one experiment gave.
pub struct Rounds<M> {
    /// One for each round: the measurements in the order of the sides.
    pub rounds: Vec<Vec<M>>,
    /// Rounds that were measured again.
    pub repeats: usize,
    /// Rounds that count although the host was disturbed.
    pub disturbed: usize,
}

impl<M> Rounds<M> {
    /// One number of two sides, for each round.
    pub fn pairs(&self, without: usize, with: usize, number: impl Fn(&M) -> f64) -> Vec<(f64, f64)> {
        self.rounds.iter().map(|round| (number(&round[without]), number(&round[with]))).collect()
    }

    /// Notes on a row how its pairs came about.
    pub fn sign(&self, mut row: Row) -> Row {
        (row.repeats, row.disturbed) = (self.repeats, self.disturbed);
        row
    }
}

/// Measures `wanted` rounds. Once the runner is asked to end, what was measured until then is kept.
///
/// # Errors
/// A measurement failed, or a program of the cell ended.
pub fn measure<S: Copy, M>(
    (wanted, stop): (usize, &Stop),
    cell: &mut Cell,
    sides: &[S],
    mut slice: impl FnMut(&mut Cell, S) -> Result<M>,
) -> Result<Rounds<M>> {
    let mut done = Rounds { rounds: Vec::new(), repeats: 0, disturbed: 0 };
    while done.rounds.len() < wanted && stop.check().is_ok() {
        let watch = Watch::start()?;
        let round = match round(cell, sides, &mut slice) {
            Ok(round) => round,
            Err(_) if stop.check().is_err() => break,
            Err(error) => return Err(error),
        };
        let disturbance = watch.finish(&cell.own_pids())?;
        if disturbance.is_too_much() && done.repeats < wanted {
            done.repeats += 1;
            eprintln!(
                "  disturbed (steal {:.0} %, other processes {:.0} % of the CPUs): once more",
                disturbance.steal_share * 100.0,
                disturbance.outside_share * 100.0
            );
            continue;
        }
        done.disturbed += usize::from(disturbance.is_too_much());
        done.rounds.push(round);
        eprintln!("  {} of {wanted}", done.rounds.len());
    }
    Ok(done)
}

fn round<S: Copy, M>(
    cell: &mut Cell,
    sides: &[S],
    slice: &mut impl FnMut(&mut Cell, S) -> Result<M>,
) -> Result<Vec<M>> {
    let mut measured: Vec<Option<M>> = sides.iter().map(|_| None).collect();
    for side in shuffled(sides.len()) {
        measured[side] = Some(slice(cell, sides[side])?);
        // Load that ended early would have left the service idle under our eyes.
        cell.check_running()?;
    }
    Ok(measured.into_iter().flatten().collect())
}

/// The numbers below `n` in random order.
fn shuffled(n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    // The standard library's hasher has random keys: enough for an order that nobody can guess.
    order.sort_by_cached_key(|i| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_usize(*i);
        hasher.finish()
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_every_side_once_and_is_not_always_the_same() {
        let orders: Vec<Vec<usize>> = (0..64).map(|_| shuffled(5)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
        }
        // All 64 alike by chance: 120^-63.
        assert!(orders.iter().any(|o| *o != orders[0]));
    }

    #[test]
    fn pairs_by_side() {
        let rounds = Rounds { rounds: vec![vec![1.0, 2.0], vec![3.0, 4.0]], repeats: 1, disturbed: 0 };
        assert_eq!(rounds.pairs(0, 1, |m| *m), [(1.0, 2.0), (3.0, 4.0)]);
        assert_eq!(rounds.sign(Row::default()).repeats, 1);
    }
}
