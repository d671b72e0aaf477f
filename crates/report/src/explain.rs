// SPDX-License-Identifier: Apache-2.0
//! What `wakewalk explain` says: of a cause, and of the words of a verdict.

use diagnose::Explain;
use diagnose::glossary::Word;

use crate::formats::terminal;

/// A cause explained, no line wider than `width` columns.
#[must_use]
pub fn cause(cause: &str, explain: &Explain, width: usize) -> String {
    let parts: [(&str, &str); 4] = [
        ("What it means", &explain.means),
        ("How it is recognised", &explain.recognised_by),
        ("Do", &explain.what_to_do),
        ("What looks like it and is not", &explain.look_alikes),
    ];
    terminal::titled(cause, &parts, width)
}

/// Words and what they mean, no line wider than `width` columns.
#[must_use]
pub fn glossary(words: &[Word], width: usize) -> String {
    terminal::terms(words, width)
}
