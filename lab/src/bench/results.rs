// SPDX-License-Identifier: Apache-2.0
//! All rows: written as JSON after each experiment, printed as a table, put into the docs. An experiment that is run alone
//! takes its own place among those of before.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::FINER;
use super::row::Row;
use crate::documents;

const BEGIN: &str = "<!-- output of `make bench`: begin -->";

/// How the intervals are made.
const METHOD: &str = "median of the pairwise means of the paired ratios' logarithms, Wilcoxon signed-rank interval";

/// What each experiment gave when it was last run on this host.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// Kernel release.
    kernel: String,
    /// CPUs of the host.
    cpus: usize,
    /// How the intervals are made.
    method: String,
    /// The experiments, in the order of the table.
    runs: Vec<Run>,
    /// The lines.
    rows: Vec<Row>,
}

/// One experiment's run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// Its name.
    pub experiment: String,
    /// The commit under test; with `-dirty` where the checkout differed from it.
    pub commit: String,
    /// Pairs asked for.
    pub pairs: usize,
    /// How long it took.
    pub seconds: f64,
    /// It was ended early: the rows are those of the pairs until then.
    pub interrupted: bool,
    /// Why it broke.
    pub failed: Option<String>,
}

impl Results {
    /// Those of before, where they are of this host; else nothing yet.
    pub fn begin(file: &Path) -> Self {
        let fresh = Self {
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            method: METHOD.into(),
            ..Self::default()
        };
        let earlier = fs::read_to_string(file).ok().and_then(|text| serde_json::from_str::<Self>(&text).ok());
        let like = |e: &Self| (&e.kernel, e.cpus, &e.method) == (&fresh.kernel, fresh.cpus, &fresh.method);
        earlier.filter(like).unwrap_or(fresh)
    }

    /// Puts what an experiment gave in the place of what it gave before; `order` are all experiments.
    pub fn add(&mut self, mut run: Run, rows: Result<Vec<Row>>, order: &[&str]) {
        self.rows.retain(|row| row.experiment != run.experiment);
        self.runs.retain(|other| other.experiment != run.experiment);
        match rows {
            Ok(rows) => {
                self.rows.extend(rows.into_iter().map(|row| Row { experiment: run.experiment.clone(), ..row }));
            }
            Err(error) => {
                eprintln!("  failed: {error:#}");
                run.failed = Some(format!("{error:#}"));
            }
        }
        self.runs.push(run);
        let place = |name: &str| order.iter().position(|other| *other == name);
        self.runs.sort_by_key(|run| place(&run.experiment));
        self.rows.sort_by_key(|row| place(&row.experiment));
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
        let mut out = format!("Linux {}, {} CPUs.\n", self.kernel, self.cpus);
        for run in &self.runs {
            let _ = writeln!(out, "\n{}", title(run));
            if let Some(why) = &run.failed {
                let _ = writeln!(out, "failed: {why}");
                continue;
            }
            let _ = write!(out, "\n{HEAD}");
            for row in self.rows.iter().filter(|row| row.experiment == run.experiment) {
                let _ = writeln!(out, "{}", line(row));
            }
        }
        let _ = writeln!(out, "\n{}", self.sum());
        out
    }

    fn sum(&self) -> String {
        let count = |holds| self.rows.iter().filter(|r| r.goal.is_some() && r.holds == holds).count();
        let repeats: usize = self.rows.iter().map(|r| r.repeats).max().unwrap_or(0);
        format!(
            "{}{SUMS}{} do not, {} could not be judged; at most {repeats} pairs of one comparison were repeated because the host was disturbed",
            count(Some(true)),
            count(Some(false)),
            count(None)
        )
    }

    /// Puts the table between the marks of a document, whose own tables of experiments that are not among these stay: they
    /// may have been measured on another machine.
    ///
    /// # Errors
    /// The document has no marks, or cannot be written.
    pub fn put_into(&self, document: &Path) -> Result<()> {
        let old = fs::read_to_string(document).with_context(|| format!("failed to read `{}`", document.display()))?;
        let kept = kept(documents::between(&old, BEGIN)?, |name| self.runs.iter().any(|run| run.experiment == name));
        documents::put(document, BEGIN, &format!("{}\n{kept}", self.table()))
    }
}

/// The tables of a document but those that are measured anew.
fn kept(document: &str, is_new: impl Fn(&str) -> bool) -> String {
    let tables = document.split("\n`").skip(1);
    let own = tables.filter(|table| table.split('`').next().is_some_and(|name| !is_new(name)));
    // What the last one is followed by are sums over all that was there.
    let lines = |table: &str| table.lines().filter(|line| !line.contains(SUMS)).collect::<Vec<_>>().join("\n");
    own.map(|table| format!("\n`{}\n", lines(table).trim_end())).collect()
}

fn title(run: &Run) -> String {
    let Run { experiment, commit, pairs, .. } = run;
    let early = if run.interrupted { ", ended early" } else { "" };
    let fine = pairs * FINER;
    format!(
        "`{experiment}` at {commit}, {pairs} pairs ({fine} where a goal is a few percent), {:.0} min{early}:",
        run.seconds / 60.0
    )
}

/// By which the line of sums is known.
const SUMS: &str = " goals hold, ";

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

    const ORDER: &[&str] = &["nginx", "redis"];

    fn run(experiment: &str) -> Run {
        Run { experiment: experiment.into(), commit: "abc1234".into(), pairs: 8, ..Run::default() }
    }

    fn results() -> Results {
        let mut results = Results::begin(Path::new("/nonexistent"));
        let fair = Row::ratio("nginx: CPU", "us", &[(7.0, 7.1); 8]).goal(Goal::AtMost(1.03));
        let poor = Row::value("start", "s", &[2.0; 8]).goal(Goal::AtMost(1.5));
        results.add(run("redis"), Err(anyhow::anyhow!("no redis")), ORDER);
        results.add(run("nginx"), Ok(vec![fair, poor, Row::refused("tool", "no kprobes\nhere")]), ORDER);
        results
    }

    #[test]
    fn tables_of_a_document_stay_until_they_are_measured_anew() {
        let document =
            "\nLinux\n\n`a` at 1, 2 pairs:\n\n| x |\n\n`b` at 1, 2 pairs:\n\n| y |\n\n3 goals hold, 0 do not\n";
        assert_eq!(kept(document, |name| name == "a"), "\n`b` at 1, 2 pairs:\n\n| y |\n");
        assert_eq!(kept(document, |_| true), "");
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
        let (nginx, redis) = (table.find("`nginx` at abc1234, 8 pairs (32"), table.find("`redis` at abc1234"));
        assert!(nginx.is_some() && nginx < redis, "{table}");
        assert!(table.contains("failed: no redis") && table.contains("1 goals hold, 1 do not, 0 could"), "{table}");
    }

    #[test]
    fn an_experiment_that_is_run_again_leaves_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("results.json");
        results().write(&file).unwrap();
        let mut again = Results::begin(&file);
        again.add(run("redis"), Ok(vec![Row::value("redis: start", "s", &[1.0; 8])]), ORDER);
        let table = again.table();
        assert!(table.contains("nginx: CPU") && table.contains("redis: start") && !table.contains("failed"), "{table}");
        fs::write(&file, "{").unwrap();
        assert_eq!(Results::begin(&file).runs.len(), 0, "a damaged file is not of this host");
    }

    #[test]
    fn the_file_has_the_fields_that_others_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("results.json");
        results().write(&file).unwrap();
        let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let row = &json["rows"][0];
        assert!(["name", "ratio", "low", "high", "goal", "holds"].iter().all(|key| !row[key].is_null()), "{row}");
        let run = &json["runs"][0];
        assert_eq!((&row["experiment"], &run["experiment"]), (&"nginx".into(), &"nginx".into()));
        assert_eq!((&run["interrupted"], &run["commit"]), (&false.into(), &"abc1234".into()));
    }

    #[test]
    fn the_document_has_a_place_for_the_table() {
        let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/bench.md");
        assert!(documents::fill(&fs::read_to_string(real).unwrap(), BEGIN, "x").is_ok());
    }
}
