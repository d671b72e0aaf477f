// SPDX-License-Identifier: Apache-2.0
//! The lines of a verdict that are read first. Rules make them, remarks and the judge add to them.

/// What is said before everything else. Headline and advice are one line each: somebody reads them at
/// three in the morning; what does not fit there belongs into the finding or the detail.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Statement {
    /// What it is, with a number.
    pub headline: String,
    /// What to do; for neutral verdicts the next limit, or the next step.
    pub advice: String,
    /// More, where no finding has it.
    pub detail: String,
}

impl Statement {
    pub(crate) fn short(headline: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { headline: headline.into(), advice: advice.into(), detail: String::new() }
    }
}
