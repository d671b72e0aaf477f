// SPDX-License-Identifier: Apache-2.0
//! At which loads a promise is kept: that is apart from what a service can answer, and it may be broken at a low load alone.

use super::{Sides, Step, Sweep, is_more_than_a_few};
use crate::reason::Reason;
use crate::reasons::{rounded, time};

impl Step {
    /// Whether the promise was kept; none = there is none, or how slow answers were is not known.
    fn keeps_promise(&self) -> Option<bool> {
        let slo = self.verdict.slo.filter(|_| !self.is_of_client())?;
        Some(self.sustained && !is_more_than_a_few(slo.broken, self.verdict.due as f64))
    }
}

/// The loads at which a promise is kept, in stretches without a load between at which it is broken.
fn span(kept: &[f64], broken: &[f64]) -> String {
    let is_apart = |low: f64, high: f64| broken.iter().any(|rate| (low..high).contains(rate));
    let stretch = |rates: &[f64]| match rates {
        [only] => format!("at {}", rounded(*only)),
        rates => format!("from {} to {}", rounded(rates[0]), rounded(rates[rates.len() - 1])),
    };
    let stretches: Vec<String> = kept.chunk_by(|low, high| !is_apart(*low, *high)).map(stretch).collect();
    if stretches.is_empty() { "at none of the loads".into() } else { format!("{} a second", stretches.join(" and ")) }
}

impl Sweep {
    /// Rates at which the promise was kept in any of their tries, or was not in any.
    fn promise_at(&self, is_kept: bool) -> Vec<f64> {
        let known = |step: &&Step| step.keeps_promise().is_some();
        let ever = |rate: f64| self.steps.iter().any(|step| step.rate == rate && step.keeps_promise() == Some(true));
        let rates = self.steps.iter().filter(known).map(|step| step.rate).filter(|rate| ever(*rate) == is_kept);
        let mut rates: Vec<f64> = rates.collect();
        rates.sort_by(f64::total_cmp);
        rates
    }

    /// The highest load at which the promise is kept, and the next one, at which it is not.
    pub(super) fn sides_of_promise(&self) -> Option<Sides> {
        let sustained = *self.promise_at(true).last()?;
        let not_sustained = self.promise_at(false).into_iter().find(|rate| *rate > sustained)?;
        Some(Sides { sustained, not_sustained })
    }

    /// Where the promise is kept.
    pub(super) fn promise(&self) -> Option<Reason> {
        let slo = self.steps.iter().find_map(|step| step.verdict.slo)?;
        let (kept, broken) = (self.promise_at(true), self.promise_at(false));
        let promise = format!("the promise of {}", time(slo.seconds));
        let span = span(&kept, &broken);
        let least = self.steps.iter().map(|step| step.rate).fold(f64::INFINITY, f64::min);
        let more = kept.last().copied().unwrap_or_default();
        let is_low = |rate: &&f64| (**rate <= least || **rate < more) && self.is_answered(**rate);
        if let Some(lowest) = broken.iter().find(is_low) {
            let what = if *lowest <= least { "the lowest load, already" } else { "and not at all higher loads" };
            let sentence = format!("{promise} is broken at {} a second, {what}; it is kept {span}", rounded(*lowest));
            return Some(Reason { code: "promise-broken-at-low-load".into(), sentence });
        }
        let then = self
            .sides_of_promise()
            .map_or(String::new(), |it| format!(", and broken at {}", rounded(it.not_sustained)));
        Some(Reason { code: "promise".into(), sentence: format!("{promise} is kept {span}{then}") })
    }

    /// Whether a load was answered: else it says more of its limit than of a promise.
    fn is_answered(&self, rate: f64) -> bool {
        self.steps.iter().any(|step| step.rate == rate && step.sustained)
    }
}
