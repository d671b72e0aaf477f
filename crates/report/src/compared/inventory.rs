// SPDX-License-Identifier: Apache-2.0
//! What was set otherwise, and on a terminal only what could matter.

use diagnose::comparison::result::Setting;

use crate::section::{Block, Column, Section, Terminal};

use super::Compared;

/// Longer values are cut: kernel modules and command lines may be pages long.
const LONGEST: usize = 160;

/// The inventory's differences.
pub fn part(compared: &Compared<'_>) -> Option<Section> {
    let all = &compared.comparison.inventory;
    let (counting, ordinary): (Vec<&Setting>, Vec<&Setting>) = all.iter().partition(|s| s.counts);
    let mut blocks = Vec::new();
    if !counting.is_empty() {
        blocks.push(table("What could be a reason", &counting));
    }
    let terminal = if counting.is_empty() { Terminal::Nothing } else { Terminal::First(1) };
    if !ordinary.is_empty() {
        blocks.push(table("What differs between any two runs", &ordinary));
    }
    let title = "What else changed".to_owned();
    (!blocks.is_empty()).then(|| Section::new("compared-inventory", title, blocks, terminal).kept())
}

fn table(title: &str, settings: &[&Setting]) -> Block {
    let columns = ["setting", "before", "after"].map(Column::left).to_vec();
    let cell = |value: &Option<String>| match value {
        None => "not there".to_owned(),
        Some(text) if text.chars().count() > LONGEST => text.chars().take(LONGEST).collect::<String>() + "…",
        Some(text) => text.clone(),
    };
    let rows = settings.iter().map(|s| vec![s.what.clone(), cell(&s.a), cell(&s.b)]).collect();
    Block::Table { title: title.to_owned(), columns, rows }
}
