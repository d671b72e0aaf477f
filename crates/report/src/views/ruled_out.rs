// SPDX-License-Identifier: Apache-2.0
//! The causes that were looked at and are not it: a result, shown with its reason. Those that a reader would have thought of
//! come first; the others share a line, and a page has their reasons too.

use diagnose::verdict::RuledOut;

use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// The ruled out causes.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let (could_be, others): (Vec<&RuledOut>, Vec<&RuledOut>) =
        material.verdict.ruled_out.iter().partition(|ruled| ruled.could_be);
    let mut blocks = Vec::new();
    if !could_be.is_empty() {
        let columns = vec![Column::left("cause"), Column::left("why not")];
        blocks.push(Block::Table { title: String::new(), columns, rows: rows(&could_be) });
    }
    let mut short = blocks.clone();
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|ruled| ruled.cause.as_str()).collect();
        blocks.push(unseen(&and(&names)));
        // Five lines of names carry no verdict.
        short.push(unseen(&if names.len() > FEW { format!("{} other causes", names.len()) } else { and(&names) }));
        let columns = vec![Column::left("cause"), Column::left("what was seen")];
        blocks.push(Block::Folded { title: "What was seen of them".to_owned(), columns, rows: rows(&others) });
    }
    (!blocks.is_empty()).then(|| Section::new("ruled-out", "Ruled out", blocks, Terminal::All).kept_as(short))
}

/// Names that the short form lists.
const FEW: usize = 6;

fn unseen(whom: &str) -> Block {
    let text = format!("Nothing, or next to nothing, was seen of {whom}.");
    Block::Text { text, tone: Tone::Plain }
}

/// Causes with the same reason share a row.
fn rows(ruled_out: &[&RuledOut]) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for ruled in ruled_out {
        match rows.iter_mut().find(|row| row[1] == ruled.why) {
            Some(row) => row[0] = format!("{}, {}", row[0], ruled.cause),
            None => rows.push(vec![ruled.cause.clone(), ruled.why.clone()]),
        }
    }
    rows
}

/// `a`, `a and b`, `a, b and c`.
fn and(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}
