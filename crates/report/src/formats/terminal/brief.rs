// SPDX-License-Identifier: Apache-2.0
//! The short form: what carries the verdict, in about fifty lines. Tables of all threads, functions, calls and
//! resources are for who has the time.

use crate::section::{Bar, Block, Section, Terminal, Tone};
use crate::views::evidence::AFTER;

/// Sections of the short form. Others are named at its end.
const SECTIONS: &[&str] = &[
    "ledger",
    "evidence",
    "also",
    "compared",
    "compared-inventory",
    "compared-remarks",
    "ruled-out",
    "gaps",
    "coverage",
];

/// Of the thread time: less is no part of the answer.
const SLIVER: f64 = 0.005;

/// Rows of the table of evidence; rules put the decisive ones first.
const ROWS: usize = 5;

/// The sections of the short form, and the titles of those that are left out.
pub fn brief(sections: &[Section]) -> (Vec<Section>, Vec<&str>) {
    let (kept, rest): (Vec<&Section>, Vec<&Section>) = sections.iter().partition(|s| SECTIONS.contains(&s.id));
    let rest = rest.into_iter().filter(|s| s.terminal != Terminal::Nothing && !s.blocks.is_empty());
    (kept.into_iter().map(shorter).collect(), rest.map(|s| s.title.as_str()).collect())
}

fn shorter(section: &Section) -> Section {
    let mut section = section.clone();
    section.blocks.truncate(section.terminal.count(section.blocks.len()));
    section.terminal = Terminal::All;
    match section.id {
        "evidence" => {
            section.blocks.retain(|block| !is_for_later(block));
            section.blocks = section.blocks.into_iter().flat_map(first_rows).collect();
        }
        "ledger" => section.blocks.iter_mut().for_each(join_slivers),
        _ => {}
    }
    section
}

/// Commands to check with, what leads to them, and what to do after the fix.
fn is_for_later(block: &Block) -> bool {
    match block {
        Block::Command { .. } | Block::Text { tone: Tone::Dim, .. } => true,
        Block::Text { text, .. } => text.starts_with(AFTER),
        _ => false,
    }
}

/// Lines of the ledger that are next to nothing become one; the bars still add up to the whole.
fn join_slivers(block: &mut Block) {
    let Block::Bars { total, parts, .. } = block else { return };
    let sliver = |bar: &Bar| bar.value < *total * SLIVER;
    let slivers: Vec<Bar> = parts.iter().filter(|bar| sliver(bar)).cloned().collect();
    if slivers.len() > 1 {
        parts.retain(|bar| !sliver(bar));
        let value = slivers.iter().map(|bar| bar.value).sum();
        let label = format!("{} other lines", slivers.len());
        parts.push(Bar { label, value, note: String::new(), tone: Tone::Dim });
    }
}

fn first_rows(block: Block) -> Vec<Block> {
    match block {
        Block::Table { title, columns, mut rows } if title.is_empty() && rows.len() > ROWS + 1 => {
            let more = format!("and {} more measured, with commands to check them", rows.len() - ROWS);
            rows.truncate(ROWS);
            vec![Block::Table { title, columns, rows }, Block::Text { text: more, tone: Tone::Dim }]
        }
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Column;

    fn section(id: &'static str, blocks: Vec<Block>) -> Section {
        Section { id, title: id.to_owned(), blocks, terminal: Terminal::All }
    }

    #[test]
    fn what_carries_the_verdict_stays_and_the_rest_is_named() {
        let rows = (0..9).map(|i| vec![i.to_string()]).collect();
        let table = Block::Table { title: String::new(), columns: vec![Column::left("measured")], rows };
        let [dim, plain] = [Tone::Dim, Tone::Plain].map(|tone| Block::Text { text: "words".to_owned(), tone });
        let evidence = vec![plain, table, dim, Block::Command { text: "top".to_owned() }];
        let all = [section("threads", vec![Block::List { items: vec![] }]), section("evidence", evidence)];
        let (kept, rest) = brief(&all);
        assert_eq!((rest, kept.len()), (vec!["threads"], 1));
        let Block::Table { rows, .. } = &kept[0].blocks[1] else { panic!("no table") };
        let Block::Text { text, .. } = &kept[0].blocks[2] else { panic!("no words") };
        assert_eq!((rows.len(), kept[0].blocks.len()), (5, 3));
        assert!(text.starts_with("and 4 more"), "{text}");
    }

    #[test]
    fn slivers_of_the_ledger_are_one_line() {
        let bar = |(label, value): (&str, f64)| Bar {
            label: label.to_owned(),
            value,
            note: String::new(),
            tone: Tone::Plain,
        };
        let parts = [("user", 9.98), ("preempted", 0.01), ("interrupted", 0.01)].map(bar).to_vec();
        let bars = Block::Bars { title: String::new(), unit: "s".to_owned(), total: 10.0, parts };
        let Block::Bars { parts, .. } = &brief(&[section("ledger", vec![bars])]).0[0].blocks[0] else {
            panic!("no bars")
        };
        let lines: Vec<_> = parts.iter().map(|bar| (bar.label.as_str(), (bar.value * 100.0).round())).collect();
        assert_eq!(lines, [("user", 998.0), ("2 other lines", 2.0)]);
    }
}
