// SPDX-License-Identifier: Apache-2.0
//! The causes that were looked at and are not it: a result, shown with its reason.

use crate::section::{Block, Column, Section, Terminal};

use super::Material;

/// The ruled out causes.
pub fn view(material: &Material<'_>) -> Option<Section> {
    // Causes with the same reason share a row.
    let mut rows: Vec<Vec<String>> = Vec::new();
    for ruled in &material.verdict.ruled_out {
        match rows.iter_mut().find(|row| row[1] == ruled.why) {
            Some(row) => row[0] = format!("{}, {}", row[0], ruled.cause),
            None => rows.push(vec![ruled.cause.clone(), ruled.why.clone()]),
        }
    }
    if rows.is_empty() {
        return None;
    }
    let columns = vec![Column::left("cause"), Column::left("why not")];
    let blocks = vec![Block::Table { title: String::new(), columns, rows }];
    Some(Section { id: "ruled-out", title: "Ruled out".to_owned(), blocks, terminal: Terminal::All })
}
