// SPDX-License-Identifier: Apache-2.0
//! Judging the recordings pair by pair: false alarms where nothing was changed, and how often the change is
//! found where it was made.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use diagnose::comparison::result::{Comparison, Difference};
use diagnose::comparison::{Named, Per, compare};
use recording::Recording;
use serde::Serialize;

use super::{Service, folder};
use crate::paths::Paths;
use crate::score::aligned;

/// False alarms that are accepted, as a share of pairs.
const MOST_ALARMS: f64 = 0.05;
/// Share of pairs in which the change must be found.
const LEAST_POWER: f64 = 0.90;

/// What the bench found.
#[derive(Debug, Default, Serialize)]
pub struct Findings {
    service: &'static str,
    seconds_a_side: f64,
    /// Pairs of runs of the same thing.
    same: Pairs,
    /// Pairs with a tenth more CPU work for each request on one side.
    changed: Pairs,
    /// CPU time for an operation, relative to the mean of its side: standard deviation over the runs.
    deviation_between_runs: f64,
    /// The change of the sides' means, which every single pair estimates.
    change: f64,
    /// Both goals hold; the second only where there are changed runs.
    holds: bool,
}

/// Pairs of one kind.
#[derive(Debug, Default, Serialize)]
struct Pairs {
    pairs: usize,
    /// In how many anything was called changed; for changed pairs, CPU time for an operation, in the right direction.
    flagged: usize,
    share: f64,
    goal: String,
    /// How often each number was flagged.
    by: BTreeMap<String, usize>,
}

/// Judges the recordings that are there, prints the table and writes it to `target/bench/diff.json`.
///
/// # Errors
/// There are too few recordings, or one cannot be read or compared.
pub fn judge(service: Service, paths: &Paths) -> Result<bool> {
    let dir = folder(paths, service);
    let (a, b) = (side(&dir, 'a')?, side(&dir, 'b')?);
    if a.len() < 2 {
        bail!("`{}` has too few recordings; run `lab bench-diff` without --judge-only", dir.display());
    }
    let mut findings = Findings { service: service.name(), ..Findings::default() };
    let mut costs = (vec![0.0; a.len()], vec![0.0; b.len()]);
    for (runs, costs) in [(&a, &mut costs.0), (&b, &mut costs.1)] {
        for (i, j) in pairs(runs.len()) {
            let c = compared(&runs[i], &runs[j])?;
            (costs[i], costs[j]) = cpu(&c);
            findings.seconds_a_side = c.a.window.seconds;
            findings.same.add(alarms(&c));
        }
    }
    for (before, after) in a.iter().flat_map(|a| b.iter().map(move |b| (a, b))) {
        let c = compared(before, after)?;
        let dearer = |d: &Difference| d.changed && d.b > d.a;
        let found =
            c.measures.iter().any(|m| m.id.starts_with("cpu") && m.group == "headline" && dearer(&m.difference));
        findings.changed.add(if found { alarms(&c) } else { Vec::new() });
    }
    findings.close(&costs.0, &costs.1);
    print!("{}", findings.table());
    let file = paths.target.join("bench/diff.json");
    fs::write(&file, serde_json::to_string_pretty(&findings)? + "\n")
        .with_context(|| format!("failed to write `{}`", file.display()))?;
    println!("written to {}", file.display());
    Ok(findings.holds)
}

/// Recordings `a0`, `a1`, … of a side.
fn side(dir: &Path, name: char) -> Result<Vec<Recording>> {
    let there = (0..).map(|i| dir.join(format!("{name}{i}"))).take_while(|dir| dir.exists());
    there.map(|dir| recording::open(&dir)).collect()
}

fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |i| (i + 1..n).map(move |j| (i, j)))
}

fn compared(a: &Recording, b: &Recording) -> Result<Comparison> {
    let named = |recording| Named { recording, label: String::new() };
    Ok(compare(&named(a), &named(b), Per::Auto)?)
}

/// CPU time for an operation on both sides.
fn cpu(c: &Comparison) -> (f64, f64) {
    c.measures.iter().find(|m| m.id == "cpu").map_or((0.0, 0.0), |m| (m.difference.a, m.difference.b))
}

/// Everything that a comparison calls changed.
fn alarms(c: &Comparison) -> Vec<String> {
    let measures = c.measures.iter().filter(|m| m.difference.changed).map(|m| m.id.clone());
    let own = c.functions.iter().filter(|f| f.own.changed).map(|f| format!("own time of {}", f.name));
    let inclusive = c.functions.iter().filter(|f| f.inclusive.changed).map(|f| format!("time under {}", f.name));
    measures.chain(own).chain(inclusive).collect()
}

impl Pairs {
    fn add(&mut self, flagged: Vec<String>) {
        self.pairs += 1;
        self.flagged += usize::from(!flagged.is_empty());
        flagged.into_iter().for_each(|what| *self.by.entry(what).or_default() += 1);
    }

    fn row(&self, kind: &str, holds: bool) -> [String; 6] {
        let share = format!("{:.1} %", self.share * 100.0);
        let holds = if self.pairs == 0 {
            "-"
        } else if holds {
            "yes"
        } else {
            "NO"
        };
        [kind.into(), self.pairs.to_string(), self.flagged.to_string(), share, self.goal.clone(), holds.into()]
    }
}

impl Findings {
    fn close(&mut self, a: &[f64], b: &[f64]) {
        for pairs in [&mut self.same, &mut self.changed] {
            pairs.share = pairs.flagged as f64 / pairs.pairs.max(1) as f64;
        }
        self.same.goal = format!("at most {:.0} %", MOST_ALARMS * 100.0);
        self.changed.goal = format!("at least {:.0} %", LEAST_POWER * 100.0);
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let relative: Vec<f64> = [a, b].iter().flat_map(|x| x.iter().map(|v| v / mean(x) - 1.0)).collect();
        let sides = if b.is_empty() { 1 } else { 2 };
        let freedom = (relative.len() - sides) as f64;
        self.deviation_between_runs = (relative.iter().map(|r| r * r).sum::<f64>() / freedom).sqrt();
        self.change = if b.is_empty() { 0.0 } else { mean(b) / mean(a) - 1.0 };
        self.holds = self.quiet() && (self.changed.pairs == 0 || self.powerful());
    }

    fn quiet(&self) -> bool {
        self.same.share <= MOST_ALARMS
    }

    fn powerful(&self) -> bool {
        self.changed.share >= LEAST_POWER
    }

    fn table(&self) -> String {
        let head = ["pairs of", "pairs", "flagged", "share", "goal", "holds"].map(String::from);
        let rows = [
            head,
            self.same.row("the same", self.quiet()),
            self.changed.row("a tenth more CPU work a request", self.powerful()),
        ];
        let mut text = aligned(&rows) + "\n";
        text += &format!(
            "{}, {:.0} s a side: CPU time an operation differs between runs of the same thing by {:.1} % (standard deviation);\n\
             the change that was made is {:+.1} %\n",
            self.service,
            self.seconds_a_side,
            self.deviation_between_runs * 100.0,
            self.change * 100.0
        );
        for (what, times) in &self.same.by {
            text += &format!("false alarm: {what}, in {times} pairs\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_hold_or_not() {
        let mut f = Findings::default();
        (0..20).for_each(|i| f.same.add(if i == 0 { vec!["cpu".into()] } else { vec![] }));
        (0..10).for_each(|i| f.changed.add(if i > 0 { vec!["cpu".into(), "user_cpu".into()] } else { vec![] }));
        f.close(&[1.0, 1.02, 0.98], &[1.1, 1.1, 1.1]);
        assert!(f.holds && (f.change - 0.1).abs() < 1e-9 && (f.deviation_between_runs - 0.01414).abs() < 1e-4, "{f:?}");
        assert!(f.table().contains("90.0 %") && f.table().contains("false alarm: cpu, in 1 pairs"), "{}", f.table());
        f.same.add(vec!["load".into()]);
        f.close(&[1.0, 1.02], &[]);
        assert!(!f.holds && f.table().contains("NO"));
    }

    #[test]
    fn every_pair_once() {
        assert_eq!(pairs(3).collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(pairs(1).count(), 0);
    }
}
