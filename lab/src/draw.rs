// SPDX-License-Identifier: Apache-2.0
//! The parameters of a scenario's run: as it was written, or drawn by a seed within the ranges in which its truth holds.
//!
//! A threshold that was drawn between two fixtures is no evidence: rates, lengths and numbers of threads are varied, and
//! the truth stays. A value follows from the seed, the scenario and the parameter's name alone, so both sides of a scenario
//! have the same, and another parameter changes none.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use fastrand::Rng;

/// Of so many values of a parameter, one is the lower end of its range and one the upper: where truths break first.
const ENDS: u64 = 6;

/// Parameters of one run.
#[derive(Debug, Default)]
pub struct Draw {
    /// None = every parameter as the scenario says.
    by: Option<(&'static str, u64)>,
    drawn: RefCell<BTreeMap<&'static str, u64>>,
}

impl Draw {
    /// Parameters of a scenario by a seed.
    pub fn of(scenario: &'static str, seed: u64) -> Self {
        Self { by: Some((scenario, seed)), drawn: RefCell::default() }
    }

    /// A number within `range`, in which the scenario's truth holds; `usual` where nothing is drawn.
    pub fn number(&self, name: &'static str, usual: u64, range: RangeInclusive<u64>) -> u64 {
        debug_assert!(range.contains(&usual), "{name}: {usual} is not in {range:?}");
        let Some((scenario, seed)) = self.by else { return usual };
        let mut rng = Rng::with_seed(seed ^ number_of(&[scenario, name]));
        let value = match rng.u64(0..ENDS) {
            0 => *range.start(),
            1 => *range.end(),
            _ => rng.u64(range),
        };
        self.drawn.borrow_mut().insert(name, value);
        value
    }

    /// What was drawn so far, `connections=3 delay_ms=41`; empty where nothing was.
    pub fn told(&self) -> String {
        let drawn = self.drawn.borrow();
        drawn.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }
}

/// A number for words, the same in every build (FNV-1a).
fn number_of(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn without_a_seed_all_is_as_usual() {
        let draw = Draw::default();
        assert_eq!((draw.number("delay_ms", 20, 5..=60), draw.told()), (20, String::new()));
    }

    #[test]
    fn a_seed_gives_the_same_again_whatever_else_is_drawn() {
        let (a, b) = (Draw::of("x", 7), Draw::of("x", 7));
        b.number("another", 1, 0..=9);
        assert_eq!(a.number("delay_ms", 20, 5..=60), b.number("delay_ms", 20, 5..=60));
        assert_eq!(a.told(), format!("delay_ms={}", a.number("delay_ms", 20, 5..=60)));
    }

    #[test]
    fn seeds_names_and_scenarios_differ_and_both_ends_come() {
        let of = |scenario, name, seed| Draw::of(scenario, seed).number(name, 20, 5..=60);
        let all: BTreeSet<u64> = (0..400).map(|seed| of("x", "delay_ms", seed)).collect();
        assert!(all.first() == Some(&5) && all.last() == Some(&60) && all.len() > 30, "{all:?}");
        let differing = |other: &dyn Fn(u64) -> u64| (0..100).filter(|&s| of("x", "delay_ms", s) != other(s)).count();
        assert!(differing(&|seed| of("y", "delay_ms", seed)) > 50 && differing(&|seed| of("x", "rate", seed)) > 50);
    }
}
