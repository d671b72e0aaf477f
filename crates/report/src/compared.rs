// SPDX-License-Identifier: Apache-2.0
//! From a comparison to sections: the answer, then the numbers with their intervals, then what explains them.
//!
//! A part is one file with one function and one line in [`PARTS`]; the order of that list is the order of the
//! report.

mod cells;
mod flame;
mod functions;
mod inventory;
mod measures;
mod remarks;
mod resources;

use diagnose::Case;
use diagnose::comparison::result::{Comparison, Side};

use crate::formats::html::{self, Page};
use crate::head::{Head, Labels};
use crate::numbers;
use crate::printable;
use crate::section::{Section, Tone};

/// What the parts are made from: the answer, and both cases, for the facts.
#[derive(Clone, Copy)]
pub struct Compared<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// The side before and the side after.
    pub cases: [&'a Case<'a>; 2],
}

/// A part: a section, or none where there is nothing to say.
type Part = fn(&Compared<'_>) -> Option<Section>;

/// All parts, in the order of the report.
const PARTS: &[Part] = &[
    measures::headline,
    functions::part,
    flame::part,
    measures::details,
    resources::part,
    inventory::part,
    remarks::part,
];

const LABELS: Labels = Labels { terminal: ["What", "Load", "Else"], page: ["Load", "What else changed"] };

/// The whole report.
#[must_use]
pub fn sections(compared: &Compared<'_>) -> Vec<Section> {
    PARTS.iter().filter_map(|part| part(compared)).collect()
}

/// The report as part of a verdict with a baseline: the answer leads, for nothing else says it there.
#[must_use]
pub fn sections_of_verdict(compared: &Compared<'_>) -> Vec<Section> {
    let mut all = sections(compared);
    if let Some(first) = all.first_mut() {
        remarks::put_answer(compared.comparison, first);
    }
    all
}

/// The head of a comparison.
#[must_use]
pub fn head(comparison: &Comparison) -> Head {
    let clean = |text: &str| printable::text(text).into_owned();
    let changed = comparison.verdict == "changed";
    Head {
        labels: &LABELS,
        cause: clean(&comparison.verdict),
        confidence: String::new(),
        tone: if changed { Tone::Warn } else { Tone::Good },
        what: clean(&comparison.headline),
        how_much: clean(&comparison.load),
        figure: None,
        to_do: clean(&comparison.besides),
        context: [("A", &comparison.a), ("B", &comparison.b)].map(|(name, side)| clean(&context(name, side))).to_vec(),
    }
}

/// The page of a comparison.
///
/// # Errors
/// When the data cannot be expressed as JSON.
pub fn page(comparison: &Comparison, sections: &[Section]) -> anyhow::Result<String> {
    let (head, target, tool) = (head(comparison), &comparison.b.target.comm, &comparison.tool);
    html::page(&Page { name: "comparison", answer: comparison, head, target, tool, sections })
}

fn context(name: &str, side: &Side) -> String {
    let seconds = numbers::seconds(side.window.seconds);
    format!("{name}: {}, {} of {} on {}, {}", side.label, seconds, side.target.comm, side.host.name, side.window.start)
}

#[cfg(test)]
mod tests;
