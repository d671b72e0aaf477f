// SPDX-License-Identifier: Apache-2.0
//! What the numbers are worth, in a word and with all reasons.

use load::{Verdict, rounded};

use crate::numbers;
use crate::section::{Block, Section, Tone};

use super::words::{self, rate};
use super::{Answer, section};

/// The first lines on a terminal.
pub fn headline(answer: &Answer) -> Section {
    let verdict = &answer.verdict;
    let (word, means, tone) = words::word(verdict);
    let mut blocks = vec![Block::Text { text: format!("{word}: {}", lower(means)), tone }];
    blocks.extend(numbers_and_reasons(verdict));
    section("verdict", format!("Load: {}", answer.load), blocks)
}

/// On a page, whose head has the word, the rest of it.
pub fn reasons(answer: &Answer) -> Section {
    section("reasons", "What it is worth".into(), numbers_and_reasons(&answer.verdict))
}

fn numbers_and_reasons(verdict: &Verdict) -> Vec<Block> {
    let mut blocks = vec![Block::Text { text: counts(verdict), tone: Tone::Plain }];
    if let Some(slo) = verdict.slo {
        let text = format!(
            "{} of the requests took longer than {} or have no answer.",
            numbers::share(slo.broken),
            numbers::seconds(slo.seconds)
        );
        blocks.push(Block::Text { text, tone: if slo.broken > 0.01 { Tone::Bad } else { Tone::Good } });
    }
    if !verdict.reasons.is_empty() {
        blocks.push(Block::List { items: verdict.reasons.iter().map(|reason| reason.sentence.clone()).collect() });
    }
    blocks
}

/// What was asked and answered, a second and in all.
fn counts(verdict: &Verdict) -> String {
    let length = numbers::seconds(verdict.length);
    let [answered, due] = [verdict.answered, verdict.due].map(|count| numbers::number(count as f64));
    match (verdict.planned.map(rounded), rate(verdict)) {
        (Some(planned), Some(rate)) => {
            format!(
                "{planned}/s asked for {length}, {rate} answered meanwhile; in the end {answered} of {due} requests."
            )
        }
        (Some(planned), None) => {
            format!("{planned}/s asked for {length}; in the end {answered} of {due} requests were answered.")
        }
        (None, Some(rate)) => format!("{rate} answered for {length}; {answered} of {due} requests."),
        (None, None) => format!("{answered} of {due} requests were answered in {length}."),
    }
}

/// A sentence behind a colon.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().collect::<String>() + letters.as_str())
}
