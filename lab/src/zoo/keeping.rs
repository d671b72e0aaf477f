// SPDX-License-Identifier: Apache-2.0
//! What the visits found: the entries, the tables, and the recordings of what is not called healthy.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use diagnose::verdict::Verdict;
use serde::{Deserialize, Serialize};

use super::animal::Animal;
use crate::paths::Paths;
use crate::scenario::NEUTRAL;
use crate::score::aligned;

/// What a verdict says of a healthy server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// Healthy, or at its limit.
    Nobody,
    /// It could not be told.
    NotDetermined,
    /// An accusation.
    Somebody,
    /// An accusation while others used the host, its CPUs were taken, or the visitors were too many for it: it may well be
    /// true.
    Disturbed,
    /// There was no diagnosis.
    Broken,
    /// Not visited.
    Skipped,
}

impl Found {
    /// The verdict's.
    pub fn of(verdict: &Verdict, disturbed: bool) -> Self {
        match verdict.verdict.as_str() {
            _ if disturbed && !verdict.findings.is_empty() => Self::Disturbed,
            _ if !verdict.findings.is_empty() => Self::Somebody,
            neutral if NEUTRAL.verdicts.contains(&neutral) => Self::Nobody,
            "not-determined" => Self::NotDetermined,
            _ => Self::Somebody,
        }
    }
}

/// One server at one load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub server: String,
    /// Which time it was visited.
    pub round: usize,
    /// How much was going on.
    pub load: String,
    /// Answers a second.
    pub per_second: Option<f64>,
    /// Share of the measured limit, where the rate did not come from it.
    pub of_limit: Option<f64>,
    /// Share of all CPUs that was used, visitors and the diagnosis included.
    pub machine: Option<f64>,
    /// Median response time, by the plan.
    pub p50_ms: Option<f64>,
    /// Likewise the 99th percentile.
    pub p99_ms: Option<f64>,
    /// Median and 99th percentile as the verdict has them: without the way to the server and back.
    #[serde(default)]
    pub seen_ms: Option<[f64; 2]>,
    /// Whether somebody was accused.
    pub found: Found,
    /// The verdict, or the cause of the first finding.
    pub verdict: String,
    /// Confidence of that finding.
    pub confidence: Option<String>,
    /// The headline where nobody is called healthy; why there was no diagnosis.
    pub note: String,
    /// Whether others used the host, or the visitors were too many.
    pub disturbed: bool,
    /// The recording of an accusation.
    pub recording: Option<PathBuf>,
}

impl Entry {
    /// A server that is not there.
    pub fn skipped(animal: &Animal, why: &str) -> Self {
        Self::without(animal, 1, "-", Found::Skipped, why.into())
    }

    /// A visit that failed.
    pub fn broken(animal: &Animal, round: usize, load: &str, error: &anyhow::Error) -> Self {
        let entry = Self::without(animal, round, load, Found::Broken, format!("{error:#}"));
        eprintln!("  {}", entry.sentence());
        entry
    }

    fn without(animal: &Animal, round: usize, load: &str, found: Found, note: String) -> Self {
        Self {
            server: animal.name.into(),
            round,
            load: load.into(),
            per_second: None,
            of_limit: None,
            machine: None,
            p50_ms: None,
            p99_ms: None,
            seen_ms: None,
            found,
            verdict: if found == Found::Broken { "no diagnosis" } else { "skipped" }.into(),
            confidence: None,
            note,
            disturbed: false,
            recording: None,
        }
    }

    /// As one line while the zoo is open.
    pub fn sentence(&self) -> String {
        let [_, load, rate, machine, p50, p99, seen_p50, seen_p99, verdict, confidence, note] = self.cells();
        format!(
            "{load}: {rate}/s, machine {machine}, p50 {p50} (seen {seen_p50}), p99 {p99} (seen {seen_p99}): {verdict} \
             ({confidence}) {note}"
        )
    }

    fn cells(&self) -> [String; 11] {
        let number = |value: Option<f64>, digits: usize, unit: &str| {
            value.map_or("-".into(), |value| format!("{value:.digits$}{unit}"))
        };
        let percent = |share: Option<f64>| number(share.map(|share| share * 100.0), 0, " %");
        let mut note = self.note.clone();
        if self.disturbed {
            note = format!("(disturbed) {note}");
        }
        if matches!(self.found, Found::Somebody | Found::Broken) {
            note = format!("WRONG: {note}");
        }
        let of_limit = self.of_limit.map(|share| format!(" ({:.1} % of its limit)", share * 100.0));
        [
            self.server.clone(),
            self.load.clone(),
            number(self.per_second, 0, &of_limit.unwrap_or_default()),
            percent(self.machine),
            number(self.p50_ms, 2, " ms"),
            number(self.p99_ms, 2, " ms"),
            number(self.seen_ms.map(|seen| seen[0]), 2, " ms"),
            number(self.seen_ms.map(|seen| seen[1]), 2, " ms"),
            self.verdict.clone(),
            self.confidence.clone().unwrap_or("-".into()),
            note.trim().to_string(),
        ]
    }
}

/// All entries of a run, and those that earlier runs have left of other servers.
pub struct Book {
    dir: PathBuf,
    before: Vec<Entry>,
    entries: Vec<Entry>,
}

/// Where the entries are kept, below the zoo's folder.
const FILE: &str = "zoo.json";
const HEAD: [&str; 11] =
    ["server", "load", "answers/s", "machine", "client p50", "p99", "seen p50", "p99", "verdict", "confidence", "note"];

impl Book {
    /// Without entries of its own; recordings of what is not called healthy are kept below `target/lab/zoo`.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(paths: &Paths) -> Result<Self> {
        let dir = paths.lab().join("zoo");
        fs::create_dir_all(&dir).with_context(|| format!("failed to make `{}`", dir.display()))?;
        let text = fs::read_to_string(dir.join(FILE)).unwrap_or_default();
        // A file that is not there yet, or of another version, has nothing to tell.
        Ok(Self { dir, before: serde_json::from_str(&text).unwrap_or_default(), entries: Vec::new() })
    }

    /// Adds an entry, and writes all of them: an interrupted run leaves what it had.
    ///
    /// # Errors
    /// The disk is full.
    pub fn add(&mut self, entry: Entry) -> Result<()> {
        self.entries.push(entry);
        let file = self.dir.join(FILE);
        let text = serde_json::to_string_pretty(&self.all())? + "\n";
        fs::write(&file, text).with_context(|| format!("failed to write `{}`", file.display()))
    }

    /// This run's, and of servers that it did not visit those of the last run that did, in the order of the list.
    fn all(&self) -> Vec<&Entry> {
        let visited = |server: &str| self.entries.iter().any(|entry| entry.server == server);
        let before = self.before.iter().filter(|entry| !visited(&entry.server));
        let mut all: Vec<&Entry> = before.chain(&self.entries).collect();
        all.sort_by_key(|entry| super::list().position(|(name, _)| name == entry.server));
        all
    }

    /// Keeps a recording under a name that no later run takes, and says where.
    ///
    /// # Errors
    /// The disk is full.
    pub fn keep(&self, recording: &Path, entry: &Entry) -> Result<PathBuf> {
        let kept_in = self.dir.join("kept");
        fs::create_dir_all(&kept_in).context("failed to make the folder of recordings")?;
        let name = recording.file_name().unwrap_or_default().to_string_lossy();
        let free = (1..).map(|n| kept_in.join(format!("{name}-{}-{n}", entry.verdict))).find(|path| !path.exists());
        let kept = free.context("no name is free")?;
        fs::rename(recording, &kept).with_context(|| format!("failed to keep `{}`", kept.display()))?;
        Ok(kept)
    }

    /// The table for a document, with what earlier runs found at other servers.
    pub fn table(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('`', ""));
        let all = self.all();
        let mut text = line(&HEAD.map(String::from)) + "|---|---|---:|---:|---:|---:|---:|---:|---|---|---|\n";
        all.iter().for_each(|entry| text += &line(&entry.cells()));
        let _ = write!(text, "\n{}", sums(&all));
        text
    }

    /// This run's table for a terminal, with where the recordings are.
    pub fn lines(&self) -> String {
        let mut lines = vec![HEAD.map(String::from)];
        lines.extend(self.entries.iter().map(Entry::cells));
        let mut text = aligned(&lines);
        for recording in self.entries.iter().filter_map(|entry| entry.recording.as_ref()) {
            let _ = writeln!(text, "wakewalk diagnose --from {}", recording.display());
        }
        let entries: Vec<&Entry> = self.entries.iter().collect();
        let counts = |found: Found| count(&entries, found);
        let failed = counts(Found::Somebody) + counts(Found::Broken);
        let skipped = counts(Found::Skipped) + counts(Found::Disturbed);
        let passed = entries.len() - failed - skipped;
        text + &sums(&entries) + &format!("\n{passed} passed, {failed} failed, {skipped} skipped\n")
    }

    /// Whether nobody was accused, and no visit failed.
    pub fn is_clean(&self) -> bool {
        self.entries.iter().all(|entry| !matches!(entry.found, Found::Somebody | Found::Broken))
    }
}

fn count(entries: &[&Entry], found: Found) -> usize {
    entries.iter().filter(|entry| entry.found == found).count()
}

fn sums(entries: &[&Entry]) -> String {
    let verdict = |verdict: &str| entries.iter().filter(|entry| entry.verdict == verdict).count();
    let found = |found: Found| count(entries, found);
    format!(
        "{} visits: {} healthy, {} at-capacity, {} not-determined, {} accused, {} accused on a disturbed \
         host, {} failed, {} skipped",
        entries.len(),
        verdict("healthy"),
        verdict("at-capacity"),
        found(Found::NotDetermined),
        found(Found::Somebody),
        found(Found::Disturbed),
        found(Found::Broken),
        found(Found::Skipped)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnose::verdict::Finding;

    fn entry(server: &str, verdict: &str, found: Found) -> Entry {
        let animal = crate::zoo::named(&[server.to_string()]).unwrap()[0];
        Entry { verdict: verdict.into(), ..Entry::without(animal, 1, "30 %", found, String::new()) }
    }

    fn book(before: Vec<Entry>, entries: Vec<Entry>) -> Book {
        Book { dir: PathBuf::new(), before, entries }
    }

    fn verdict(verdict: &str, findings: Vec<Finding>) -> Verdict {
        let json = serde_json::json!({
            "schema": 2, "tool": "", "host": {"name": "", "kernel": "", "cpus": 2, "virtualization": ""},
            "target": {"named": "", "pids": [], "comm": "", "listen": []},
            "window": {"start": "", "seconds": 1.0, "ended": ""},
            "symptom": {"kind": "cpu", "value": 0.0, "unit": "", "baseline": null, "source": ""},
            "verdict": verdict, "headline": "", "advice": "", "findings": findings, "ruled_out": [], "gaps": [],
            "ledger": {"threads": {}, "connections": {}},
            "coverage": {"thread_time": 1.0, "cpu_time": 1.0, "blocked_time": 1.0, "events_lost": 0},
            "cost": {"cpu_seconds": 0.0, "share_of_machine": 0.0, "peak_rss_bytes": 0,
                     "kernel_map_bytes": 0, "call_window_share": 0.0}
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn whom_a_verdict_accuses() {
        let of = |said: &str, findings: usize, disturbed: bool| {
            Found::of(&verdict(said, vec![Finding::default(); findings]), disturbed)
        };
        assert_eq!(of("healthy", 0, false), Found::Nobody);
        assert_eq!(of("at-capacity", 0, true), Found::Nobody);
        assert_eq!(of("not-determined", 0, false), Found::NotDetermined);
        assert_eq!(of("busy-poll", 1, false), Found::Somebody);
        assert_eq!(of("healthy", 1, false), Found::Somebody);
        assert_eq!(of("run-queue-wait", 1, true), Found::Disturbed);
    }

    #[test]
    fn an_accusation_or_a_failure_is_not_clean_and_a_gap_is_counted_apart() {
        let gap = entry("redis", "not-determined", Found::NotDetermined);
        let fine = book(vec![], vec![entry("nginx", "healthy", Found::Nobody), gap]);
        assert!(fine.is_clean());
        assert!(fine.lines().contains("2 visits: 1 healthy, 0 at-capacity, 1 not-determined, 0 accused"));
        assert!(fine.lines().ends_with("2 passed, 0 failed, 0 skipped\n"));
        assert!(!book(vec![], vec![entry("nginx", "hot-code", Found::Somebody)]).is_clean());
        assert!(!book(vec![], vec![entry("nginx", "", Found::Broken)]).is_clean());
    }

    #[test]
    fn earlier_runs_fill_the_table_but_not_the_judgement() {
        let before = vec![entry("redis", "hot-code", Found::Somebody), entry("nginx", "hot-code", Found::Somebody)];
        let book = book(before, vec![entry("redis", "healthy", Found::Nobody)]);
        let table = book.table();
        assert!(book.is_clean() && table.contains("| nginx | 30 % |") && table.contains("1 healthy"), "{table}");
        assert_eq!(table.matches("redis").count(), 1);
        assert!(table.find("nginx") < table.find("redis"));
    }
}
