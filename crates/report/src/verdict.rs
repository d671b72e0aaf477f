// SPDX-License-Identifier: Apache-2.0
//! The report of a verdict, and how it is drawn.

use std::io::{self, Write};

use diagnose::verdict::Verdict;

use crate::compared::{self, Compared};
use crate::formats::html::Page;
use crate::formats::{html, terminal};
use crate::section::Section;
use crate::views::head::head;
use crate::views::{self, Material};

/// The whole report. A comparison stands between what was found and what it was found in.
#[must_use]
pub fn sections(material: &Material<'_>, compared: Option<&Compared<'_>>) -> Vec<Section> {
    let [found, found_in] = views::sections(material);
    [found, compared.map(compared::sections_of_verdict).unwrap_or_default(), found_in].concat()
}

/// Draws it, no line wider than `width` columns.
///
/// # Errors
/// When `out` cannot be written.
pub fn draw(verdict: &Verdict, sections: &[Section], width: usize, out: &mut impl Write) -> io::Result<()> {
    terminal::report(&head(verdict), sections, width, out)
}

/// Draws its short form, no line wider than `width` columns, and says what that leaves out.
///
/// # Errors
/// When `out` cannot be written.
pub fn draw_brief(verdict: &Verdict, sections: &[Section], width: usize, out: &mut impl Write) -> io::Result<()> {
    terminal::brief(&head(verdict), sections, width, out)
}

/// Its page.
///
/// # Errors
/// When the data cannot be expressed as JSON.
pub fn page(verdict: &Verdict, sections: &[Section]) -> anyhow::Result<String> {
    let (head, target, tool) = (head(verdict), &verdict.target.comm, &verdict.tool);
    html::page(&Page { name: "verdict", answer: verdict, head, target, tool, sections })
}
