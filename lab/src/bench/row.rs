// SPDX-License-Identifier: Apache-2.0
//! One line of the results: what was compared, how it came out, what it should have been.

use serde::{Deserialize, Serialize};

use super::statistics::{self, Estimate};

/// What a line should be; it holds only if the bad end of the interval does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Not over this.
    AtMost(f64),
    /// Not under this.
    AtLeast(f64),
    /// Not further off 1 than by this factor, either way.
    WithinFactor(f64),
}

impl Goal {
    fn holds(self, e: &Estimate) -> bool {
        match self {
            Self::AtMost(most) => e.high <= most,
            Self::AtLeast(least) => e.low >= least,
            Self::WithinFactor(factor) => e.high <= factor && e.low >= 1.0 / factor,
        }
    }

    fn words(self, unit: &str) -> String {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        match self {
            Self::AtMost(most) => format!("<= {most}{unit}"),
            Self::AtLeast(least) => format!(">= {least}{unit}"),
            Self::WithinFactor(factor) => format!("within x{factor}"),
        }
    }
}

/// One line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// Experiment.
    pub experiment: String,
    /// What was compared, in words that tell it from all other lines.
    pub name: String,
    /// With / without, or the value itself where `unit` is not empty.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// How often such intervals hold the truth.
    pub confidence: f64,
    /// Unit of the three; empty = a ratio.
    pub unit: String,
    /// The goal in words; none = shown for comparison.
    pub goal: Option<String>,
    /// Whether the bad end of the interval meets the goal; none = no goal, or too few pairs to say.
    pub holds: Option<bool>,
    /// Pairs that count.
    pub pairs: usize,
    /// Pairs that were measured again because the host was disturbed.
    pub repeats: usize,
    /// Pairs among those that count in which the host was disturbed.
    pub disturbed: usize,
    /// Median without.
    pub without: Option<f64>,
    /// Median with.
    pub with: Option<f64>,
    /// Unit of `without` and `with`.
    pub of: String,
    /// What each pair gave: without and with, or the one value.
    pub raw: Vec<Vec<f64>>,
    /// What else has to be known; for a tool that did not start, its message.
    pub note: String,
}

impl Row {
    /// With against without.
    pub fn ratio(name: impl Into<String>, of: &str, pairs: &[(f64, f64)]) -> Self {
        let column =
            |pick: fn(&(f64, f64)) -> f64| Some(statistics::median(&pairs.iter().map(pick).collect::<Vec<_>>()));
        let raw = pairs.iter().map(|p| vec![p.0, p.1]).collect();
        let row = Self { name: name.into(), of: of.into(), pairs: pairs.len(), raw, ..Self::default() };
        Self { without: column(|p| p.0), with: column(|p| p.1), ..row.with_estimate(statistics::of_ratios(pairs)) }
    }

    /// A quantity on its own.
    pub fn value(name: impl Into<String>, unit: &str, values: &[f64]) -> Self {
        let raw = values.iter().map(|v| vec![*v]).collect();
        let row = Self { name: name.into(), unit: unit.into(), pairs: values.len(), raw, ..Self::default() };
        row.with_estimate(statistics::of_values(values))
    }

    /// Something that could not be measured, and why.
    pub fn refused(name: impl Into<String>, why: &str) -> Self {
        Self { name: name.into(), note: why.trim().replace('\n', " "), ..Self::default() }
    }

    fn with_estimate(mut self, estimate: Option<Estimate>) -> Self {
        match estimate {
            Some(e) => (self.ratio, self.low, self.high, self.confidence) = (e.centre, e.low, e.high, e.confidence),
            None => self.note = "not measured".into(),
        }
        self
    }

    /// Sets and judges a goal.
    #[must_use]
    pub fn goal(mut self, goal: Goal) -> Self {
        let e = Estimate { centre: self.ratio, low: self.low, high: self.high, confidence: self.confidence };
        self.goal = Some(goal.words(&self.unit));
        self.holds = e.is_sure().then(|| goal.holds(&e));
        self
    }

    /// Adds a remark.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_holds_only_if_the_bad_end_does() {
        let pairs = |with: [f64; 8]| with.map(|w| (100.0, w));
        let fair = Row::ratio("x", "us", &pairs([101.0, 102.0, 101.5, 101.0, 102.0, 101.0, 100.5, 101.0]));
        assert_eq!((fair.without, fair.of.as_str(), fair.pairs), (Some(100.0), "us", 8));
        assert_eq!(fair.clone().goal(Goal::AtMost(1.03)).holds, Some(true));
        assert_eq!(fair.clone().goal(Goal::AtMost(1.011)).holds, Some(false));
        assert_eq!(fair.clone().goal(Goal::AtLeast(0.95)).holds, Some(true));
        assert_eq!(fair.clone().goal(Goal::WithinFactor(1.001)).holds, Some(false));
        assert_eq!(fair.goal(Goal::AtMost(1.03)).goal.as_deref(), Some("<= 1.03"));
    }

    #[test]
    fn too_few_pairs_are_not_judged() {
        assert_eq!(Row::ratio("x", "us", &[(1.0, 1.0); 3]).goal(Goal::AtMost(1.03)).holds, None);
        let none = Row::ratio("x", "us", &[]).goal(Goal::AtMost(1.03));
        assert_eq!((none.holds, none.note.as_str()), (None, "not measured"));
    }

    #[test]
    fn quantities_have_their_unit_in_the_goal() {
        let row = Row::value("start", "s", &[1.0; 8]).goal(Goal::AtMost(1.5));
        assert_eq!((row.goal.as_deref(), row.holds), (Some("<= 1.5 s"), Some(true)));
    }
}
