// SPDX-License-Identifier: Apache-2.0
//! What `wakewalk load` says: the verdict on the numbers before the numbers.
//!
//! A part is one file with one function and one line in [`PARTS`]; those of a sweep are in `sweep`.

mod client;
mod course;
mod failures;
mod head;
mod likeness;
mod phases;
mod service;
mod sweep;
mod times;
mod verdict;
mod words;

use std::io::{self, Write};

use diagnose::likeness::Likeness;
use load::{Meanwhile, Sweep, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use crate::formats::html::Page;
use crate::formats::{html, terminal};
use crate::numbers;
use crate::section::{Block, Section, Terminal, Tone};

/// Version of the contract of `load`.
const SCHEMA: u32 = 1;

/// What `wakewalk load --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct Answer {
    /// Version of this contract.
    schema: u32,
    /// Always `load`.
    kind: &'static str,
    /// Name and version of the program.
    tool: String,
    /// Whom it loaded, or the command that loaded.
    load: String,
    /// The verdict and its numbers.
    #[serde(flatten)]
    verdict: Verdict,
    /// What the service did meanwhile; none = it was not diagnosed.
    service: Option<Meanwhile>,
    /// How the service was asked in production, beside how it was asked by this load (`--like`); none = that was not compared.
    production: Option<Likeness>,
}

/// What `wakewalk load --sweep --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct SweepAnswer {
    /// Version of this contract.
    schema: u32,
    /// Always `sweep`.
    kind: &'static str,
    /// Name and version of the program.
    tool: String,
    /// Whom it loaded.
    load: String,
    /// Its loads and what they say.
    #[serde(flatten)]
    sweep: Sweep,
}

/// A part of what is said of a load: a section, or none where there is nothing to say.
type Part = fn(&Answer) -> Option<Section>;

/// All parts below the verdict, in the order of the report.
const PARTS: &[Part] =
    &[times::part, course::part, failures::part, phases::part, client::part, service::part, likeness::part];

impl Answer {
    /// Of one load.
    pub fn new(tool: &str, load: String, verdict: Verdict, service: Option<Meanwhile>) -> Self {
        Self { schema: SCHEMA, kind: "load", tool: tool.into(), load, verdict, service, production: None }
    }

    /// The same beside production.
    #[must_use]
    pub fn beside(self, production: Option<Likeness>) -> Self {
        Self { production, ..self }
    }

    fn parts(&self) -> impl Iterator<Item = Section> {
        PARTS.iter().filter_map(|part| part(self))
    }
}

impl SweepAnswer {
    /// Of one load after another.
    pub fn new(tool: &str, load: String, sweep: Sweep) -> Self {
        Self { schema: SCHEMA, kind: "sweep", tool: tool.into(), load, sweep }
    }
}

/// Draws the verdict on one load, no line wider than `width` columns; `full` = second by second too.
///
/// # Errors
/// When `out` cannot be written.
pub fn draw(answer: &Answer, full: bool, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let sections: Vec<Section> = std::iter::once(verdict::headline(answer))
        .chain(answer.parts())
        .chain(full.then(|| course::told(answer)))
        .collect();
    terminal::sections(&sections, width, &mut &mut *out)
}

/// The page of one load.
///
/// # Errors
/// When the data cannot be expressed as JSON.
pub fn page(answer: &Answer) -> anyhow::Result<String> {
    let (head, sections) = (head::head(answer), sections(answer));
    let (target, tool) = (&answer.load, &answer.tool);
    html::page(&Page { name: "load", answer, head, target, tool, sections: &sections })
}

/// What a page shows of one load below its head.
fn sections(answer: &Answer) -> Vec<Section> {
    std::iter::once(verdict::reasons(answer)).chain(answer.parts()).collect()
}

/// Draws a sweep, no line wider than `width` columns; `full` = what its generator took at each load too.
///
/// # Errors
/// When `out` cannot be written.
pub fn draw_sweep(answer: &SweepAnswer, full: bool, width: usize, out: &mut dyn Write) -> io::Result<()> {
    terminal::sections(&sweep::told(answer, full), width, &mut &mut *out)
}

/// The page of a sweep.
///
/// # Errors
/// When the data cannot be expressed as JSON.
pub fn sweep_page(answer: &SweepAnswer) -> anyhow::Result<String> {
    let (head, sections) = (sweep::head::head(answer), sweep::sections(answer));
    let (target, tool) = (&answer.load, &answer.tool);
    html::page(&Page { name: "sweep", answer, head, target, tool, sections: &sections })
}

fn section(id: &'static str, title: String, blocks: Vec<Block>) -> Section {
    Section::new(id, title, blocks, Terminal::All)
}

fn dim(text: &str) -> Block {
    Block::Text { text: text.into(), tone: Tone::Dim }
}

fn percentile(seconds: Option<f64>) -> String {
    seconds.map_or("-".into(), numbers::seconds)
}

/// Words that stand behind a colon elsewhere, as a sentence of their own.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map_or(String::new(), |first| first.to_uppercase().collect());
    let end = if words.ends_with(['.', '!', '?']) { "" } else { "." };
    first + letters.as_str() + end
}

#[cfg(test)]
mod tests;
