// SPDX-License-Identifier: Apache-2.0
//! The limit, and what else is to be known.

use load::{Knee, rounded};

use crate::section::{Block, Section, Tone};

use crate::load::{SweepAnswer, section};

/// The first lines on a terminal.
pub fn told(answer: &SweepAnswer) -> Section {
    let tone = if answer.sweep.knee.is_some() { Tone::Good } else { Tone::Warn };
    let blocks = [Block::Text { text: limit(answer.sweep.knee), tone }].into_iter().chain(findings(answer)).collect();
    section("sweep", format!("Sweep of {}", answer.load), blocks)
}

/// On a page, whose head has the limit, all findings.
pub fn part(answer: &SweepAnswer) -> Option<Section> {
    Some(section("found", "What was found".into(), vec![findings(answer)?]))
}

/// The limit in words.
pub(super) fn limit(knee: Option<Knee>) -> String {
    knee.map_or("The limit was not found.".into(), |knee| {
        let [least, most] = [knee.least, knee.most].map(rounded);
        let range = if least == most { String::new() } else { format!(" ({least} to {most})") };
        format!(
            "It answers about {} requests a second at most{range}: asked for {} it is behind by less than 3 %, asked for {} by more.",
            rounded(knee.answered),
            rounded(knee.sustained),
            rounded(knee.not_sustained)
        )
    })
}

fn findings(answer: &SweepAnswer) -> Option<Block> {
    let items: Vec<String> = answer.sweep.findings.iter().map(|finding| finding.sentence.clone()).collect();
    (!items.is_empty()).then_some(Block::List { items })
}
