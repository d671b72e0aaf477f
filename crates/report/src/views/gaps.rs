// SPDX-License-Identifier: Apache-2.0
//! What could not be looked at, and what would change that.

use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// The gaps; that there is none is worth a line.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let rows: Vec<_> = material.verdict.gaps.iter().map(|gap| vec![gap.what.clone(), gap.why.clone()]).collect();
    let block = if rows.is_empty() {
        Block::Text { text: "None in what this version measures.".to_owned(), tone: Tone::Plain }
    } else {
        let columns = vec![Column::left("not seen"), Column::left("why")];
        Block::Table { title: String::new(), columns, rows }
    };
    Some(Section::new("gaps", "Gaps", vec![block], Terminal::All).kept())
}
