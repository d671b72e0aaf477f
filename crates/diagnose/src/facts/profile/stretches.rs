// SPDX-License-Identifier: Apache-2.0
//! Unnamed code in pieces about the size of a function.
//!
//! Code of a binary has no gaps that sampling could find, so a piece is what a window of [`STRETCH_BYTES`]
//! holds. Code compiled at run time is different: each function is one contiguous object with its tables and
//! cold exits before and behind its instructions, so samples that are close together are one function and a
//! gap of [`GAP_BYTES`] ends it. What then is still longer than a function is none.

use std::collections::BTreeMap;

use super::Place;
use crate::facts::stacks::{Code, Stacks};

/// The longest piece of unnamed code that is taken for one function.
pub const STRETCH_BYTES: u64 = 4096;

/// Between the hot instructions of two functions that were compiled at run time lie at least the end of the one
/// (deoptimisation exits, tables) and the head of the other (V8: 64 bytes; HotSpot: some 300).
const GAP_BYTES: u64 = 128;

/// Pieces of one module that are told apart; the rest is scattered.
const MOST: usize = 8;

/// Samples by offset.
type Offsets = BTreeMap<u64, u64>;

/// Pieces of unnamed code by module: inclusive ranges of offsets.
#[derive(Default)]
pub(super) struct Stretches(BTreeMap<String, Vec<(u64, u64)>>);

impl Stretches {
    /// The heaviest pieces of each module, by samples that are their own or credited to them.
    pub(super) fn of(places: &BTreeMap<Place, u64>, stacks: &Stacks) -> Self {
        let mut offsets: BTreeMap<(&str, bool), Offsets> = BTreeMap::new();
        for (place, &weight) in places.iter().filter(|(p, _)| !p.kernel) {
            let leaf = stacks.user(place.stack).next();
            let credited = stacks.credited(place.stack).map(|(code, _)| code);
            let both = [leaf, credited.filter(|c| leaf != Some(c))];
            for code in both.into_iter().flatten().filter(|c| c.symbol.is_empty() && c.offset > 0) {
                let module = offsets.entry((&code.module, code.is_jit())).or_default();
                *module.entry(code.offset).or_default() += weight;
            }
        }
        let pieces = |((module, jit), offsets): ((&str, bool), Offsets)| {
            (module.to_string(), if jit { runs(&offsets) } else { windows(offsets) })
        };
        Stretches(offsets.into_iter().map(pieces).collect())
    }

    /// The piece that unnamed code is in.
    pub(super) fn find(&self, code: &Code) -> Option<(u64, u64)> {
        let ranges = self.0.get(&code.module).filter(|_| code.symbol.is_empty())?;
        ranges.iter().copied().find(|&(from, to)| (from..=to).contains(&code.offset))
    }
}

/// The heaviest runs of offsets without a gap that are no longer than a function.
fn runs(offsets: &Offsets) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64, u64)> = Vec::new();
    for (&offset, &weight) in offsets {
        match all.last_mut() {
            Some((_, end, sum)) if offset - *end < GAP_BYTES => (*end, *sum) = (offset, *sum + weight),
            _ => all.push((offset, offset, weight)),
        }
    }
    all.retain(|(from, to, _)| to - from < STRETCH_BYTES);
    all.sort_by_key(|&(from, _, weight)| (std::cmp::Reverse(weight), from));
    all.into_iter().take(MOST).map(|(from, to, _)| (from, to)).collect()
}

/// The heaviest windows, found one after the other.
fn windows(mut offsets: Offsets) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    while found.len() < MOST && !offsets.is_empty() {
        let sorted: Vec<(u64, u64)> = offsets.iter().map(|(&o, &w)| (o, w)).collect();
        let (mut first, mut weight, mut best) = (0, 0, (0, 0, 0));
        for &(offset, w) in &sorted {
            weight += w;
            while offset - sorted[first].0 >= STRETCH_BYTES {
                weight -= sorted[first].1;
                first += 1;
            }
            if weight > best.0 {
                best = (weight, sorted[first].0, offset);
            }
        }
        offsets.retain(|o, _| !(best.1..=best.2).contains(o));
        found.push((best.1, best.2));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(all: &[(u64, u64)]) -> Offsets {
        all.iter().copied().collect()
    }

    #[test]
    fn a_gap_ends_a_function_that_was_compiled_at_run_time() {
        let two = offsets(&[(0x1000, 5), (0x1040, 5), (0x1080, 5), (0x1100, 9), (0x1110, 9)]);
        assert_eq!(runs(&two), [(0x1100, 0x1110), (0x1000, 0x1080)]);
        // In a binary, the same is one window.
        assert_eq!(windows(two), [(0x1000, 0x1110)]);
    }

    #[test]
    fn what_is_longer_than_a_function_is_none() {
        let long: Offsets = (0..100).map(|i| (0x1000 + i * 64, 1)).collect();
        assert_eq!(runs(&long), []);
        assert_eq!(windows(long)[0], (0x1000, 0x1fc0));
    }
}
