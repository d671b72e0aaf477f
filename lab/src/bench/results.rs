// SPDX-License-Identifier: Apache-2.0
//! All rows: written as JSON after each experiment, printed as a table, put into the docs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;

use super::FINER;
use super::row::Row;
use crate::documents;

const BEGIN: &str = "<!-- output of `make bench`: begin -->";

/// The results of one run.
#[derive(Debug, Serialize)]
pub struct Results {
    /// Kernel release.
    kernel: String,
    /// CPUs of the host.
    cpus: usize,
    /// Pairs asked for.
    pairs: usize,
    /// How the intervals are made.
    method: &'static str,
    /// False while it runs, and where it was interrupted.
    pub finished: bool,
    /// How long it has taken so far.
    seconds: f64,
    /// Experiments that broke, each with its reason.
    failed: Vec<String>,
    /// The lines.
    rows: Vec<Row>,
    #[serde(skip)]
    began: Option<Instant>,
}

impl Results {
    /// Nothing yet.
    pub fn begin(pairs: usize) -> Self {
        Self {
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            pairs,
            method: "median of the pairwise means of the paired ratios' logarithms, Wilcoxon signed-rank interval",
            finished: false,
            seconds: 0.0,
            failed: Vec::new(),
            rows: Vec::new(),
            began: Some(Instant::now()),
        }
    }

    /// Adds what an experiment gave.
    pub fn add(&mut self, experiment: &str, rows: Result<Vec<Row>>) {
        match rows {
            Ok(rows) => self.rows.extend(rows.into_iter().map(|row| Row { experiment: experiment.into(), ..row })),
            Err(error) => {
                eprintln!("  failed: {error:#}");
                self.failed.push(format!("{experiment}: {error:#}"));
            }
        }
        self.seconds = self.began.map_or(0.0, |began| began.elapsed().as_secs_f64());
    }

    /// Whether an experiment broke.
    pub fn any_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Writes them as JSON, by way of a second file: an interrupted write must not cost what was there.
    ///
    /// # Errors
    /// The disk is full.
    pub fn write(&self, file: &Path) -> Result<()> {
        let fresh = file.with_extension("json.new");
        fs::write(&fresh, serde_json::to_string_pretty(self)? + "\n")
            .and_then(|()| fs::rename(&fresh, file))
            .with_context(|| format!("failed to write `{}`", file.display()))
    }

    /// The table as text; it is also Markdown.
    pub fn table(&self) -> String {
        let mut out = format!(
            "Linux {}, {} CPUs, {} pairs ({} where a goal is a few percent), {:.0} min{}\n",
            self.kernel,
            self.cpus,
            self.pairs,
            self.pairs * FINER,
            self.seconds / 60.0,
            if self.finished { "" } else { ", interrupted" }
        );
        let mut experiment = "";
        for row in &self.rows {
            if row.experiment != experiment {
                experiment = &row.experiment;
                let _ = write!(out, "\n{HEAD}");
            }
            let _ = writeln!(out, "{}", line(row));
        }
        for failed in &self.failed {
            let _ = writeln!(out, "\nfailed: {failed}");
        }
        let _ = writeln!(out, "\n{}", self.sum());
        out
    }

    fn sum(&self) -> String {
        let count = |holds| self.rows.iter().filter(|r| r.goal.is_some() && r.holds == holds).count();
        let repeats: usize = self.rows.iter().map(|r| r.repeats).max().unwrap_or(0);
        format!(
            "{} goals hold, {} do not, {} could not be judged; at most {repeats} pairs of one comparison were repeated because the host was disturbed",
            count(Some(true)),
            count(Some(false)),
            count(None)
        )
    }

    /// Puts the table between the marks of a document.
    ///
    /// # Errors
    /// The document has no marks, or cannot be written.
    pub fn put_into(&self, document: &Path) -> Result<()> {
        documents::put(document, BEGIN, &self.table())
    }
}

const HEAD: &str = "| what | without | with | ratio or value | 95 % interval | goal | holds |\n\
                    |---|---:|---:|---:|---|---|---|\n";

fn line(row: &Row) -> String {
    let cell = |value: Option<f64>| value.map_or(String::new(), |v| format!("{} {}", short(v), row.of));
    let (value, interval) = match row.pairs {
        0 => (String::new(), String::new()),
        _ => (with_unit(row.ratio, &row.unit), format!("{} – {}", short(row.low), short(row.high))),
    };
    let mut name = row.name.clone();
    if !row.note.is_empty() {
        let _ = write!(name, " ({})", row.note.replace('|', "/"));
    }
    let holds = match (&row.goal, row.holds) {
        (None, _) => "",
        (_, Some(true)) => "yes",
        (_, Some(false)) => "**no**",
        (_, None) => "too few pairs",
    };
    let goal = row.goal.as_deref().unwrap_or("");
    format!("| {name} | {} | {} | {value} | {interval} | {goal} | {holds} |", cell(row.without), cell(row.with))
}

fn with_unit(value: f64, unit: &str) -> String {
    if unit.is_empty() { format!("x{}", short(value)) } else { format!("{} {unit}", short(value)) }
}

/// Four significant digits, without an exponent.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::Goal;

    fn results() -> Results {
        let mut results = Results::begin(8);
        let fair = Row::ratio("nginx: CPU", "us", &[(7.0, 7.1); 8]).goal(Goal::AtMost(1.03));
        let poor = Row::value("start", "s", &[2.0; 8]).goal(Goal::AtMost(1.5));
        results.add("nginx", Ok(vec![fair, poor, Row::refused("tool", "no kprobes\nhere")]));
        results.add("redis", Err(anyhow::anyhow!("no redis")));
        results
    }

    #[test]
    fn the_table_says_what_holds_and_what_broke() {
        let table = results().table();
        assert!(
            table.contains("| nginx: CPU | 7.000 us | 7.100 us | x1.014 | 1.014 – 1.014 | <= 1.03 | yes |"),
            "{table}"
        );
        assert!(table.contains("| start |  |  | 2.000 s | 2.000 – 2.000 | <= 1.5 s | **no** |"), "{table}");
        assert!(table.contains("| tool (no kprobes here) |  |  |  |  |  |  |"), "{table}");
        assert!(
            table.contains("failed: redis: no redis") && table.contains("1 goals hold, 1 do not, 0 could"),
            "{table}"
        );
    }

    #[test]
    fn the_file_has_the_fields_that_others_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("results.json");
        results().write(&file).unwrap();
        let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let row = &json["rows"][0];
        assert!(["name", "ratio", "low", "high", "goal", "holds"].iter().all(|key| !row[key].is_null()), "{row}");
        assert_eq!((&row["experiment"], &json["finished"]), (&"nginx".into(), &false.into()));
    }

    #[test]
    fn the_document_has_a_place_for_the_table() {
        let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/bench.md");
        assert!(documents::fill(&fs::read_to_string(real).unwrap(), BEGIN, "x").is_ok());
    }
}
