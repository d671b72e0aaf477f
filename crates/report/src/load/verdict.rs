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
    let asked = verdict.planned.map_or(String::new(), |planned| format!("{}/s asked, ", rounded(planned)));
    let numbers = format!(
        "{asked}{}answered for {}; {} of {} requests.",
        rate(verdict).map_or(String::new(), |rate| format!("{rate} ")),
        numbers::seconds(verdict.length),
        numbers::number(verdict.answered as f64),
        numbers::number(verdict.due as f64)
    );
    let mut blocks = vec![Block::Text { text: numbers, tone: Tone::Plain }];
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

/// A sentence behind a colon.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().collect::<String>() + letters.as_str())
}
