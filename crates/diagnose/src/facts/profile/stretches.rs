// SPDX-License-Identifier: Apache-2.0
//! Unnamed code in pieces about the size of a function.
//!
//! Code of a binary has no gaps that sampling could find, so a piece is what a stretch of [`STRETCH_BYTES`]
//! holds. Code compiled at run time is different: each function is one contiguous object with its tables and
//! cold exits before and behind its instructions, so samples that are close together are one function and a
//! gap of [`GAP_BYTES`] ends it; but a function with two loops has such a gap inside as well, and then both are reached
//! by the same call. Samples that are close together for longer than a function are none.

use std::collections::BTreeMap;

use super::Place;
use crate::facts::stacks::Stacks;
use crate::runtimes::code::Code;

/// The longest piece of unnamed code that is taken for one function.
pub const STRETCH_BYTES: u64 = 4096;

/// Between the hot instructions of two functions that were compiled at run time lie at least the end of the one
/// (deoptimisation exits, tables) and the head of the other (V8: 64 bytes; HotSpot: some 300).
const GAP_BYTES: u64 = 128;

/// Between two loops of one function, which the same call reaches, there may be so much.
const GAP_INSIDE_BYTES: u64 = 1024;

/// Pieces of one module that are told apart; the rest is scattered.
const MOST: usize = 8;

/// Samples by offset.
type Offsets = BTreeMap<u64, Spot>;

/// Samples at one offset.
#[derive(Clone, Debug, Default)]
struct Spot {
    weight: u64,
    /// The same by the address to which the function returns; 0 = unknown.
    calls: BTreeMap<u64, u64>,
}

impl Spot {
    fn add(&mut self, other: &Spot) {
        self.weight += other.weight;
        for (call, weight) in &other.calls {
            *self.calls.entry(*call).or_default() += weight;
        }
    }

    /// The call that most samples came by; 0 = unknown.
    fn call(&self) -> u64 {
        self.calls.iter().max_by_key(|(_, weight)| **weight).map_or(0, |(call, _)| *call)
    }
}

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
                let mut outer = stacks.user(place.stack).skip_while(|other| *other != code).skip(1);
                let call = outer.next().map_or(0, |caller| caller.offset);
                module.entry(code.offset).or_default().add(&Spot { weight, calls: BTreeMap::from([(call, weight)]) });
            }
        }
        let pieces = |((module, jit), offsets): ((&str, bool), Offsets)| {
            (module.to_string(), if jit { runs(&offsets) } else { heaviest(offsets) })
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
    let mut near: Vec<Run> = Vec::new();
    for (&offset, spot) in offsets {
        join(&mut near, (offset, offset, spot.clone()), |a, b| b.0 - a.1 < GAP_BYTES);
    }
    let mut all = Vec::new();
    for run in near {
        // One that is longer, as what was inlined into its caller, is told by its pieces.
        let is_short = |a: &Run, b: &Run| b.1 - a.0 < STRETCH_BYTES;
        let same_call = |a: &Run, b: &Run| a.2.call() != 0 && a.2.call() == b.2.call();
        join(&mut all, run, |a, b| b.0 - a.1 < GAP_INSIDE_BYTES && same_call(a, b) && is_short(a, b));
    }
    all.retain(|(from, to, _)| to - from < STRETCH_BYTES);
    all.sort_by_key(|(from, _, spot)| (std::cmp::Reverse(spot.weight), *from));
    all.into_iter().take(MOST).map(|(from, to, _)| (from, to)).collect()
}

/// Samples from one offset to another.
type Run = (u64, u64, Spot);

/// Adds a run to the last one if both are of one function.
fn join(runs: &mut Vec<Run>, run: Run, is_one: impl Fn(&Run, &Run) -> bool) {
    match runs.last_mut() {
        Some(last) if is_one(last, &run) => {
            last.1 = run.1;
            last.2.add(&run.2);
        }
        _ => runs.push(run),
    }
}

/// The heaviest stretches, found one after the other.
fn heaviest(mut offsets: Offsets) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    while found.len() < MOST && !offsets.is_empty() {
        let sorted: Vec<(u64, u64)> = offsets.iter().map(|(&o, spot)| (o, spot.weight)).collect();
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
        all.iter().map(|&(offset, weight)| (offset, Spot { weight, ..Spot::default() })).collect()
    }

    #[test]
    fn a_gap_ends_a_function_that_was_compiled_at_run_time() {
        let two = offsets(&[(0x1000, 5), (0x1040, 5), (0x1080, 5), (0x1100, 9), (0x1110, 9)]);
        assert_eq!(runs(&two), [(0x1100, 0x1110), (0x1000, 0x1080)]);
        // In a binary, the same is one stretch.
        assert_eq!(heaviest(two), [(0x1000, 0x1110)]);
    }

    #[test]
    fn two_loops_that_the_same_call_reaches_are_one_function() {
        let called = |at: u64, call: u64| (at, Spot { weight: 5, calls: BTreeMap::from([(call, 4), (0, 1)]) });
        let loops = |one: u64, other: u64| Offsets::from([called(0x1000, one), called(0x1100, other)]);
        assert_eq!(runs(&loops(0x9000, 0x9000)), [(0x1000, 0x1100)]);
        assert_eq!(runs(&loops(0x9000, 0x9010)), [(0x1000, 0x1000), (0x1100, 0x1100)]);
        // Of callers that are unknown nothing follows, nor of pieces that are far apart.
        assert_eq!(runs(&loops(0, 0)).len(), 2);
        assert_eq!(runs(&Offsets::from([called(0x1000, 7), called(0x1500, 7)])).len(), 2);
        // A long function is told by its pieces.
        let long: Offsets = (0..8).map(|nth| called(0x1000 + nth * 0x300, 7)).collect();
        assert_eq!(runs(&long), [(0x1000, 0x1f00), (0x2200, 0x2500)]);
    }

    #[test]
    fn what_is_longer_than_a_function_is_none() {
        let long: Vec<(u64, u64)> = (0..100).map(|i| (0x1000 + i * 64, 1)).collect();
        let long = offsets(&long);
        assert_eq!(runs(&long), []);
        assert_eq!(heaviest(long)[0], (0x1000, 0x1fc0));
    }
}
