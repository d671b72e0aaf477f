// SPDX-License-Identifier: Apache-2.0
//! Words that the head of a load and the section below it share.

use load::{Verdict, Word, rounded};

use crate::numbers;
use crate::section::Tone;

/// The verdict: its word, what that means, and how it feels.
pub fn word(verdict: &Verdict) -> (&'static str, &'static str, Tone) {
    match verdict.verdict {
        Word::Valid if !verdict.sees_answers => {
            ("valid", "As far as the kernel sees, these times are the service's.", Tone::Good)
        }
        Word::Valid => ("valid", "These numbers are the service's.", Tone::Good),
        Word::ClientLimited => (
            "client-limited",
            "The generator's own limits are in these numbers: they are not the service's alone.",
            Tone::Bad,
        ),
        Word::Misleading => {
            ("misleading", "These numbers are true, and say something else than they seem to.", Tone::Warn)
        }
        Word::NotEnoughData if verdict.reasons.len() > 1 => (
            "not-enough-data",
            "Too few answers for a p99; what the others mean, the further reasons below say.",
            Tone::Warn,
        ),
        Word::NotEnoughData => ("not-enough-data", "Too few answers for a p99; what is shown stands.", Tone::Warn),
    }
}

/// Requests a second: whole ones, but of a few.
pub fn requests(rate: f64) -> String {
    if rate < 10.0 { rounded(rate) } else { numbers::number(rate.round()) }
}

/// Answers a second; of a load that was two, a rate is of neither.
pub fn rate(verdict: &Verdict) -> Option<String> {
    let went_alike = verdict.phases.iter().filter(|phase| !phase.is_warm_up).count() < 2;
    went_alike.then(|| format!("{}/s", rounded(verdict.rate)))
}
