// SPDX-License-Identifier: Apache-2.0
//! When exchanges were followed. Those of a busy service are followed for a few seconds at a time, and not at all on kernels that do not
//! show them: what ends while nobody looks, or takes longer than they are followed without a break, is never seen, and that none was
//! seen says nothing then.

use std::collections::BTreeSet;

use recording::tables::{Exchange, ExchangeWindow};

use crate::answer::Gap;
use crate::case::{Case, Fact, SLICE_NS};
use crate::statistics::ratio;

/// The times in which they were.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Followed {
    /// Ends of the slices, ns.
    ends: BTreeSet<u64>,
    /// Lengths of those without a break, ns.
    runs: Vec<f64>,
    /// Of the case, ns.
    length_ns: f64,
}

/// Between one slice and the next, ns: with less, none is left out.
const BREAK_NS: u64 = SLICE_NS / 10;

/// Of the case: the rest is how long it takes to begin.
const WHOLE: f64 = 0.9;

/// Looks meet what waits for an answer half way through, on average.
const HALF_WAY: f64 = 2.0;

/// Of a case, ns: an answer that takes longer than one that is so long is none.
const LONG_NS: f64 = 5e9;

impl Fact for Followed {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let mut windows: Vec<&ExchangeWindow> = case.recording.rows::<ExchangeWindow>().iter().collect();
        windows.sort_by_key(|window| window.t_ns);
        let ends = windows.iter().map(|window| window.t_ns).collect();
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for window in windows {
            let begin = window.t_ns.saturating_sub(window.length_ns);
            match runs.last_mut() {
                Some((_, end)) if begin <= *end + BREAK_NS => *end = window.t_ns,
                _ => runs.push((begin, window.t_ns)),
            }
        }
        let mut runs: Vec<f64> = runs.into_iter().map(|(begin, end)| (end - begin) as f64).collect();
        let length_ns = case.length_ns();
        // Where nothing says so, whatever was seen was followed.
        if runs.is_empty() && !case.recording.rows::<Exchange>().is_empty() {
            runs.push(length_ns);
        }
        Ok(Self { ends, runs, length_ns })
    }
}

impl Followed {
    /// Whether they were in the slice that ended then; without a word about it, in all.
    pub fn has(&self, t_ns: u64) -> bool {
        let near = t_ns.saturating_sub(SLICE_NS / 2)..t_ns.saturating_add(SLICE_NS / 2);
        match self.ends.is_empty() {
            true => !self.runs.is_empty(),
            false => self.ends.range(near).next().is_some(),
        }
    }

    /// Of exchanges that long which end in these times, the share that is seen from its begin to its end.
    pub fn sees(&self, length_ns: f64) -> f64 {
        let whole: f64 = self.runs.iter().map(|run| (run - length_ns).max(0.0)).sum();
        ratio(whole, self.runs.iter().sum())
    }

    /// Whether next to all of the case was.
    pub fn is_whole(&self) -> bool {
        self.runs.iter().any(|run| *run >= self.length_ns * WHOLE)
    }

    /// Whether an answer would have been seen to what had been owed for so long, on average over looks: all was followed, or as long as
    /// that without a break; or it was owed for the whole of the case, and that is long.
    pub fn would_tell(&self, owed_ns: f64) -> bool {
        let longest = self.runs.iter().copied().fold(0.0, f64::max);
        self.is_whole() || longest >= owed_ns * HALF_WAY || self.is_owed_throughout(owed_ns)
    }

    fn is_owed_throughout(&self, owed_ns: f64) -> bool {
        self.length_ns >= LONG_NS && owed_ns * HALF_WAY >= self.length_ns || owed_ns >= self.length_ns.max(LONG_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    fn of(more: &str) -> Followed {
        let recording = parse(&format!("meta length_ns=10e9\n{more}")).unwrap();
        (*Case::new(&recording).fact::<Followed>().unwrap()).clone()
    }

    #[test]
    fn what_is_seen_of_a_part() {
        let part = of("exchange_window t_ns=1e9 length_ns=1e9
             exchange_window t_ns=2e9 length_ns=98e7
             exchange_window t_ns=8e9 length_ns=1e9");
        assert_eq!(part.runs, [2e9, 1e9]);
        assert_eq!([2, 5, 8].map(|second| part.has(second * SLICE_NS)), [true, false, true]);
        assert!((part.sees(1e9) - 1.0 / 3.0).abs() < 1e-9 && part.sees(2e9) == 0.0);
        assert_eq!([1e9, 2e9, 4e9, 5e9].map(|owed_ns| part.would_tell(owed_ns)), [true, false, false, true]);
    }

    #[test]
    fn what_is_seen_of_all_or_nothing() {
        let all = of("exchange_window t_ns=10e9 length_ns=96e8");
        assert!(all.would_tell(6e9) && all.sees(0.0) == 1.0);
        let none = of("");
        assert!(!none.would_tell(4e9) && none.would_tell(6e9) && none.sees(0.0) == 0.0);
        assert!(of("exchange role=accepted port=80 stage=response count=1").would_tell(6e9));
    }
}
