// SPDX-License-Identifier: Apache-2.0
//! At which loads a promise is kept: that is apart from what a service can answer, and it may be broken at a low load alone.

use super::{Sides, Step, Sweep, is_client_full, is_more_than_a_few};
use crate::reason::Reason;
use crate::reasons::time;

impl Step {
    /// Whether the promise was kept; none = there is none, or how slow answers were is not known.
    fn keeps_promise(&self) -> Option<bool> {
        let slo = self.verdict.slo.filter(|_| !is_client_full(&self.verdict))?;
        Some(self.sustained && !is_more_than_a_few(slo.broken, self.verdict.due as f64))
    }
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
        let span = match (kept.first(), kept.last()) {
            (Some(least), Some(most)) if least < most => format!("from {least:.0} to {most:.0} a second"),
            (Some(only), _) => format!("at {only:.0} a second"),
            _ => "at none of the loads".into(),
        };
        let least = self.steps.iter().map(|step| step.rate).fold(f64::INFINITY, f64::min);
        if let Some(lowest) = broken.first().filter(|rate| **rate <= least && self.is_answered(**rate)) {
            let sentence =
                format!("{promise} is broken at {lowest:.0} a second, the lowest load, already; it is kept {span}");
            return Some(Reason { code: "promise-broken-at-low-load".into(), sentence });
        }
        let then =
            self.sides_of_promise().map_or(String::new(), |it| format!(", and broken at {:.0}", it.not_sustained));
        Some(Reason { code: "promise".into(), sentence: format!("{promise} is kept {span}{then}") })
    }

    /// Whether a load was answered: else it says more of its limit than of a promise.
    fn is_answered(&self, rate: f64) -> bool {
        self.steps.iter().any(|step| step.rate == rate && step.sustained)
    }
}
