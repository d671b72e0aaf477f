// SPDX-License-Identifier: Apache-2.0
//! `lab languages`: how good stacks are, language by language, on a CPU and in waits, from the recordings of the last run
//! of the lab.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use diagnose::Case;
use diagnose::facts::stacks::Stacks;
use recording::tables::{Sample, WaitStack};

use crate::documents;
use crate::paths::Paths;

const MARK: &str = "<!-- output of `make languages`: begin -->";

/// Language and the recording that stands for it.
const ALL: &[(&str, &str)] = &[
    ("C, own frames unwound by .eh_frame", "lock-convoy"),
    ("C, stripped (nginx of the distribution)", "nginx-static"),
    ("C, stripped (Redis of the distribution)", "redis-load"),
    ("Go", "go-small-gc"),
    ("Go calling C (cgo)", "busy-poll"),
    ("JavaScript (Node.js, no perf map)", "slow-store"),
    ("Python, stripped (of the distribution)", "sleep-in-path"),
    ("Java (HotSpot, no perf map)", "java-idle-pool"),
];

/// Stacks of one kind, added up.
#[derive(Default)]
struct Quality {
    stacks: u64,
    frames: u64,
    named: u64,
    complete: u64,
}

impl Quality {
    fn add(&mut self, stacks: &Stacks, id: u32) {
        let named = |code: &&diagnose::facts::stacks::Code| !code.symbol.is_empty();
        let frames = stacks.user(id).count() as u64;
        if frames == 0 {
            return;
        }
        self.stacks += 1;
        self.frames += frames;
        self.named += stacks.user(id).filter(named).count() as u64;
        self.complete += u64::from(stacks.is_complete(id));
    }

    fn cells(&self) -> String {
        let of = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        if self.stacks == 0 {
            return "0 | | |".to_string();
        }
        let depth = self.frames as f64 / self.stacks as f64;
        let (named, complete) = (of(self.named, self.frames), of(self.complete, self.stacks));
        format!("{} | {depth:.1} | {named:.0} % | {complete:.0} %", self.stacks)
    }
}

/// Prints the table; with `document` it goes into the docs.
///
/// # Errors
/// A recording is missing: the lab has not been run.
pub fn run(document: bool, paths: &Paths) -> Result<()> {
    let mut text =
        "| language | on a CPU: stacks | frames each | named | to the thread's start | waiting: stacks | frames \
                    each | named | to the thread's start |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
            .to_string();
    for (language, name) in ALL {
        let dir = paths.recording(name);
        let recording =
            recording::open(&dir).with_context(|| format!("no recording `{}`: run `make lab` first", dir.display()))?;
        let case = Case::new(&recording);
        let stacks = case.fact::<Stacks>().map_err(|gap| anyhow::anyhow!("{}", gap.why))?;
        let (mut running, mut waiting) = (Quality::default(), Quality::default());
        recording.rows::<Sample>().iter().for_each(|row| running.add(&stacks, row.stack));
        recording.rows::<WaitStack>().iter().for_each(|row| waiting.add(&stacks, row.stack));
        let _ = writeln!(text, "| {language} | {} | {} |", running.cells(), waiting.cells());
    }
    print!("{text}");
    if document {
        documents::put(&paths.repository.join("docs/walk.md"), MARK, &text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_a_scenario() {
        for (language, name) in ALL {
            assert!(crate::scenarios::ALL.iter().any(|s| s.name == *name), "{language}: {name}");
        }
    }

    #[test]
    fn the_document_has_a_place_for_the_table() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/walk.md");
        assert!(documents::fill(&std::fs::read_to_string(file).unwrap(), MARK, "x").is_ok());
    }
}
