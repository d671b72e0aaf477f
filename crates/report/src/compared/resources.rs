// SPDX-License-Identifier: Apache-2.0
//! The USE tables of both sides beside each other, where a resource differs.

use diagnose::facts::resources::{Resources, UseRow};
use diagnose::phrases::resources::{errors, name, saturation, utilization};

use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Compared;

/// Resources.
pub fn part(compared: &Compared<'_>) -> Option<Section> {
    let [a, b] = [0, 1].map(|side| compared.cases[side].fact::<Resources>().ok());
    let (a, b) = (a?, b?);
    let rows: Vec<Vec<String>> =
        b.rows.iter().filter_map(|row| pair(a.rows.iter().find(|r| r.resource == row.resource)?, row)).collect();
    if rows.is_empty() {
        return None;
    }
    let columns = vec![
        Column::left("resource"),
        Column::left("used, before"),
        Column::left("after"),
        Column::left("waiting, before"),
        Column::left("after"),
        Column::left("errors, before"),
        Column::left("after"),
    ];
    let note = "One total a side, so no intervals; resources that read the same on both sides are left out. Shares of \
                CPUs have intervals under “Ledger, calls, counters”.";
    let blocks = vec![
        Block::Table { title: String::new(), columns, rows },
        Block::Text { text: note.to_owned(), tone: Tone::Dim },
    ];
    let title = "Utilization, saturation, errors, before and after".to_owned();
    Some(Section::new("compared-use", title, blocks, Terminal::Nothing))
}

/// Cells of a resource, if any of them reads otherwise.
fn pair(a: &UseRow, b: &UseRow) -> Option<Vec<String>> {
    let cells = |row: &UseRow| [utilization(row), saturation(row), errors(row)].map(Option::unwrap_or_default);
    let mut row = vec![name(&b.resource)];
    let (a, b) = (cells(a), cells(b));
    let differ = a != b;
    a.into_iter().zip(b).for_each(|(before, after)| row.extend([before, after]));
    differ.then_some(row)
}
