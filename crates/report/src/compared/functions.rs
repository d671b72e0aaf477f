// SPDX-License-Identifier: Apache-2.0
//! Functions whose CPU time changed: their own work, and with all that they called.

use diagnose::comparison::result::{Difference, Function};

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::{Compared, cells};

/// Rows on a page.
const MOST: usize = 25;
/// Rows on a terminal.
const ON_TERMINAL: usize = 8;

/// The functions.
pub fn part(compared: &Compared<'_>) -> Option<Section> {
    let all = &compared.comparison.functions;
    if all.is_empty() {
        return None;
    }
    let operation = &compared.comparison.operation.name;
    let own: Vec<&Function> = all.iter().filter(|f| f.own.a != 0.0 || f.own.b != 0.0).collect();
    let sure: Vec<&Function> = own.iter().copied().filter(|f| f.own.changed).take(ON_TERMINAL).collect();
    let mut blocks = Vec::new();
    if sure.is_empty() {
        let text = "No function\u{2019}s own work certainly changed.".to_owned();
        blocks.push(Block::Text { text, tone: Tone::Dim });
    } else {
        blocks.push(table(&format!("Own work that certainly changed, per {operation}"), &sure, |f| f.own));
    }
    let mut inclusive: Vec<&Function> = all.iter().collect();
    let size = |f: &Function| (f.inclusive.b - f.inclusive.a).abs();
    inclusive.sort_by(|x, y| size(y).total_cmp(&size(x)).then_with(|| x.name.cmp(&y.name)));
    inclusive.truncate(MOST);
    let grown: Vec<&Function> = inclusive.iter().copied().filter(|f| f.inclusive.changed).collect();
    if !grown.is_empty() {
        let title = format!("With all that it called, what certainly changed, per {operation}");
        blocks.push(table(&title, &grown, |f| f.inclusive));
    }
    let own = &own[..own.len().min(MOST)];
    blocks.push(table(&format!("Own work, all, per {operation}"), own, |f| f.own).folded());
    blocks.push(table(&format!("With all that it called, all, per {operation}"), &inclusive, |f| f.inclusive).folded());
    let title = "Functions, before and after".to_owned();
    Some(Section::new("compared-functions", title, blocks, Terminal::First(1)))
}

fn table(title: &str, functions: &[&Function], of: impl Fn(&Function) -> Difference) -> Block {
    let columns = vec![
        Column::left("function"),
        Column::right("before"),
        Column::right("after"),
        Column::right("change"),
        Column::right("interval"),
        Column::left("sure"),
    ];
    let row = |f: &&Function| {
        let d = of(f);
        let [a, b] = [d.a, d.b].map(numbers::seconds);
        let name = if f.module == "kernel" { format!("{} [kernel]", f.name) } else { f.name.clone() };
        vec![name, a, b, cells::change(&d), cells::interval(&d), cells::mark(&d)]
    };
    Block::Table { title: title.to_owned(), columns, rows: functions.iter().map(row).collect() }
}
