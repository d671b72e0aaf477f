// SPDX-License-Identifier: Apache-2.0
//! Stretches in which it went differently.

use load::{Phase, rounded};

use crate::section::{Block, Column, Section};

use super::{Answer, percentile, section};

/// The section; none where it went alike all the time.
pub fn part(answer: &Answer) -> Option<Section> {
    let phases = &answer.verdict.phases;
    if phases.len() < 2 {
        return None;
    }
    let row = |phase: &Phase| {
        let note = if phase.is_warm_up { "warm-up, left out" } else { "" };
        let span = format!("{} to {} s", phase.from, phase.to);
        let [p50, p99] = [phase.corrected.p50, phase.corrected.p99].map(percentile);
        vec![span, rounded(phase.rate), phase.failed.to_string(), p50, p99, note.into()]
    };
    let heads = ["answered/s", "failed", "p50", "p99"].map(Column::right);
    let columns = [Column::left("phase")].into_iter().chain(heads).chain([Column::left("")]).collect();
    let table = Block::Table { title: String::new(), columns, rows: phases.iter().map(row).collect() };
    Some(section("phases", "It did not go alike all the time".into(), vec![table]))
}
