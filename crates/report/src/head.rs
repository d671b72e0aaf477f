// SPDX-License-Identifier: Apache-2.0
//! The answer before everything else, whatever it is about.
//!
//! Not a section: each format gives it its best place, the first lines or the top card.

use crate::section::Tone;

/// How the three sentences are called.
#[derive(Debug)]
pub struct Labels {
    /// On a terminal, in five columns at most.
    pub terminal: [&'static str; 3],
    /// The second and the third on a page.
    pub page: [&'static str; 2],
}

/// The answer in three sentences, ready to print.
#[derive(Clone, Debug)]
pub struct Head {
    /// How its sentences are called.
    pub labels: &'static Labels,
    /// Cause id.
    pub cause: String,
    /// How sure, `high confidence`; empty where nothing is accused.
    pub confidence: String,
    /// What the reader should feel.
    pub tone: Tone,
    /// What it is.
    pub what: String,
    /// How much of the time.
    pub how_much: String,
    /// The one number to remember, and what it is, `of thread time`; none where there is no such number.
    pub figure: Option<(String, String)>,
    /// What to do.
    pub to_do: String,
    /// Who was watched, where and when; `streamd (pid 4242)`, …
    pub context: Vec<String>,
}
