// SPDX-License-Identifier: Apache-2.0
//! The score table: what was expected, what the verdict was, and whether the twin was left in peace.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use diagnose::verdict::Verdict;
use serde::Serialize;

use crate::disturbance::Disturbance;
use crate::scenario::{Expected, Scenario, Side};

/// How one side of a scenario came out.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Which side.
    pub side: Side,
    /// Right verdicts.
    pub expected: Vec<String>,
    /// The verdict; none = there was no diagnosis.
    pub verdict: Option<String>,
    /// Confidence of the first finding; none = nobody was accused.
    pub confidence: Option<String>,
    /// The verdict's sentence.
    pub headline: Option<String>,
    /// What is wrong; none = right.
    pub objection: Option<String>,
    /// Runs after the first, because the host was disturbed.
    pub repeats: usize,
    /// The run that counts was disturbed too.
    pub disturbed: bool,
    /// It is wrong, and says no more than what disturbed it.
    pub excused: bool,
    /// Parameters that were drawn; empty = as usual.
    pub drawn: String,
    /// What the host did besides, in each run.
    pub disturbances: Vec<Disturbance>,
}

impl Outcome {
    /// A verdict against the truth.
    pub fn new(side: Side, truth: &Expected, verdict: &Verdict, disturbances: Vec<Disturbance>) -> Self {
        let (objection, last) = (truth.objection(verdict), disturbances.last().copied().unwrap_or_default());
        Self {
            excused: objection.is_some() && last.is_what_is_said(&verdict.verdict),
            verdict: Some(verdict.verdict.clone()),
            confidence: verdict.findings.first().map(|f| f.confidence.clone()),
            headline: Some(verdict.headline.clone()),
            disturbed: last.is_too_much(),
            ..Self::blank(side, truth, objection, disturbances)
        }
    }

    /// There was no diagnosis.
    pub fn broken(side: Side, truth: &Expected, error: &anyhow::Error, disturbances: Vec<Disturbance>) -> Self {
        Self::blank(side, truth, Some(format!("{error:#}")), disturbances)
    }

    fn blank(side: Side, truth: &Expected, objection: Option<String>, disturbances: Vec<Disturbance>) -> Self {
        Self {
            side,
            expected: truth.verdicts.iter().map(|v| (*v).to_string()).collect(),
            verdict: None,
            confidence: None,
            headline: None,
            objection,
            repeats: disturbances.len().saturating_sub(1),
            disturbed: false,
            excused: false,
            drawn: String::new(),
            disturbances,
        }
    }

    fn shown(&self) -> &str {
        self.verdict.as_deref().unwrap_or("no diagnosis")
    }
}

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the scenario.
    pub scenario: String,
    /// What its parameters were drawn by; none = they are as usual.
    pub seed: Option<u64>,
    /// The side with the fault, or a control's only side.
    pub fault: Outcome,
    /// The healthy twin, where there is one.
    pub twin: Option<Outcome>,
}

impl Row {
    /// A scenario that was run.
    pub fn new(scenario: &Scenario, fault: Outcome, twin: Option<Outcome>) -> Self {
        Self { scenario: scenario.name.into(), seed: None, fault, twin }
    }

    /// As it is shown, `slow-store, seed 42`.
    fn name(&self) -> String {
        self.seed.map_or_else(|| self.scenario.clone(), |seed| format!("{}, seed {seed}", self.scenario))
    }

    /// A scenario that could not be built.
    pub fn failed(scenario: &Scenario, error: &anyhow::Error) -> Self {
        Self::new(scenario, Outcome::broken(Side::Fault, &scenario.expected, error, vec![]), None)
    }

    /// How it came out.
    pub fn came_out(&self) -> CameOut {
        match self.objections().fold((0, 0), |(all, bare), (o, _)| (all + 1, bare + usize::from(!o.excused))) {
            (0, _) => CameOut::Right,
            (_, 0) => CameOut::Disturbed,
            _ => CameOut::Wrong,
        }
    }

    /// Whether it is not right, and was disturbed when it came out so.
    pub fn deserves_another(&self) -> bool {
        self.objections().any(|(outcome, _)| outcome.disturbed)
    }

    fn sides(&self) -> impl Iterator<Item = &Outcome> {
        std::iter::once(&self.fault).chain(&self.twin)
    }

    fn objections(&self) -> impl Iterator<Item = (&Outcome, &str)> {
        self.sides().filter_map(|o| Some((o, o.objection.as_deref()?)))
    }

    fn repeats(&self) -> usize {
        self.sides().map(|o| o.repeats).sum()
    }
}

/// How a scenario came out, both sides of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CameOut {
    /// As was expected.
    Right,
    /// Not as was expected, but no more was said than that somebody else had the CPUs, and he had: a skip.
    Disturbed,
    /// Not as was expected.
    Wrong,
}

impl CameOut {
    fn shown(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Disturbed => "SKIPPED",
            Self::Wrong => "WRONG",
        }
    }
}

/// All lines, and the sums.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// Scenarios that came out right.
    pub passed: usize,
    /// Scenarios that did not.
    pub failed: usize,
    /// Scenarios that were not run because the kernel refuses BPF, or not judged because the host was disturbed.
    pub skipped: usize,
    /// Runs that were repeated because the host was disturbed.
    pub repeats: usize,
    /// The lines.
    pub rows: Vec<Row>,
}

impl Score {
    /// Sums the lines up.
    pub fn new(rows: Vec<Row>, skipped: usize) -> Self {
        let count = |which| rows.iter().filter(|row| row.came_out() == which).count();
        let (passed, failed) = (count(CameOut::Right), count(CameOut::Wrong));
        let skipped = skipped + count(CameOut::Disturbed);
        Self { passed, failed, skipped, repeats: rows.iter().map(Row::repeats).sum(), rows }
    }

    /// The table for a terminal.
    pub fn table(&self) -> String {
        let mut lines =
            vec![["scenario", "expected", "verdict", "confidence", "twin's verdict", "repeats", ""].map(String::from)];
        for row in &self.rows {
            let disturbed = row.sides().any(|o| o.disturbed);
            lines.push([
                row.name(),
                row.fault.expected.join(" or "),
                row.fault.shown().into(),
                row.fault.confidence.clone().unwrap_or("-".into()),
                row.twin.as_ref().map_or("-", Outcome::shown).into(),
                format!("{}{}", row.repeats(), if disturbed { " (still disturbed)" } else { "" }),
                row.came_out().shown().into(),
            ]);
        }
        let mut out = aligned(&lines);
        for row in &self.rows {
            for (outcome, objection) in row.objections() {
                let side = if outcome.side == Side::Twin { ", twin" } else { "" };
                let with = if outcome.drawn.is_empty() { String::new() } else { format!(" ({})", outcome.drawn) };
                let _ = writeln!(out, "{}{side}{with}: {objection}", row.name());
            }
        }
        out
    }

    /// Writes the score as JSON.
    ///
    /// # Errors
    /// The disk is full.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("failed to write `{}`", path.display()))
    }
}

/// Columns as wide as their widest cell.
pub fn aligned<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| lines.iter().map(|l| l[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut out = String::new();
    for line in lines {
        let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::NEUTRAL;

    fn outcome(side: Side, verdict: &str, objection: Option<&str>) -> Outcome {
        Outcome {
            verdict: Some(verdict.into()),
            ..Outcome::blank(side, &NEUTRAL, objection.map(String::from), vec![Disturbance::default(); 2])
        }
    }

    #[test]
    fn a_twin_that_is_accused_makes_the_row_wrong() {
        let row = |twin| Row {
            scenario: "s".into(),
            seed: None,
            fault: outcome(Side::Fault, "busy-poll", None),
            twin: Some(twin),
        };
        let score = Score::new(
            vec![
                row(outcome(Side::Twin, "healthy", None)),
                row(outcome(Side::Twin, "hot-code", Some("expected healthy, the verdict is hot-code"))),
            ],
            3,
        );
        assert_eq!((score.passed, score.failed, score.skipped, score.repeats), (1, 1, 3, 4));
        let table = score.table();
        assert_eq!(table.lines().filter(|l| l.ends_with("right")).count(), 1, "{table}");
        assert!(table.contains("s, twin: expected healthy, the verdict is hot-code"), "{table}");
    }

    #[test]
    fn what_says_no_more_than_that_the_host_was_disturbed_is_a_skip() {
        let side =
            |side, objection, excused| Outcome { disturbed: true, excused, ..outcome(side, "cpu-steal", objection) };
        let row = |fault, twin| Row { scenario: "s".into(), seed: None, fault, twin: Some(twin) };
        let wrong = Some("expected healthy, the verdict is cpu-steal");
        let calm = |objection| side(Side::Fault, objection, false);
        let score = Score::new(
            vec![
                row(calm(None), side(Side::Twin, wrong, true)),
                row(calm(wrong), side(Side::Twin, wrong, true)),
                row(calm(None), side(Side::Twin, None, false)),
            ],
            0,
        );
        assert_eq!((score.passed, score.failed, score.skipped), (1, 1, 1));
        assert_eq!(score.table().lines().filter(|l| l.ends_with("(still disturbed)  SKIPPED")).count(), 1);
    }

    #[test]
    fn columns_line_up() {
        let lines = [["a", "b"], ["long", "c"]].map(|l| l.map(String::from));
        assert_eq!(aligned(&lines), "a     b\nlong  c\n");
    }
}
