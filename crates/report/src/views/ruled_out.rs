//! The causes that were looked at and are not it: a result, shown with its reason.

use crate::section::{Block, Column, Section};

use super::Material;

/// The ruled out causes.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let rows: Vec<_> = material.verdict.ruled_out.iter().map(|r| vec![r.cause.clone(), r.why.clone()]).collect();
    if rows.is_empty() {
        return None;
    }
    let columns = vec![Column::left("cause"), Column::left("why not")];
    let blocks = vec![Block::Table { title: String::new(), columns, rows }];
    Some(Section { id: "ruled-out", title: "Ruled out".to_owned(), blocks, terminal: true })
}
