// SPDX-License-Identifier: Apache-2.0
//! The numbers: the few that the answer rests on, and the many that explain it.

use diagnose::comparison::result::{Difference, Measure};

use crate::section::{Block, Column, Section, Terminal, Tone};

use super::{Compared, cells};

/// The few.
pub fn headline(compared: &Compared<'_>) -> Option<Section> {
    let few: Vec<&Measure> = of_group(compared, "headline").collect();
    let operation = &compared.comparison.operation;
    let per = if operation.id == "second" {
        format!("Per second, for the operation is not known: {}.", operation.why)
    } else {
        format!("CPU time is per {}: {}.", operation.name, operation.why)
    };
    let blocks = vec![table("", &few), Block::Text { text: per, tone: Tone::Dim }];
    let title = "Before and after".to_owned();
    (!few.is_empty()).then(|| Section::new("compared", title, blocks, Terminal::All).kept())
}

fn of_group<'c>(compared: &Compared<'c>, group: &str) -> impl Iterator<Item = &'c Measure> {
    compared.comparison.measures.iter().filter(move |m| m.group == group)
}

/// The many: on a terminal only those that certainly changed.
pub fn details(compared: &Compared<'_>) -> Option<Section> {
    let operation = &compared.comparison.operation.name;
    let groups = [
        ("ledger", format!("Thread ledger, per {operation}")),
        ("calls", format!("System calls counted in windows, per {operation}")),
        ("counters", format!("Kernel counters of the service, per {operation}")),
        ("host", format!("Kernel counters of all on the host or in its network, per {operation}")),
        ("machine", "The CPUs that the service may use".to_owned()),
    ];
    let changed: Vec<&Measure> =
        compared.comparison.measures.iter().filter(|m| m.group != "headline" && m.difference.changed).collect();
    let mut blocks = Vec::new();
    if !changed.is_empty() {
        blocks.push(table(&format!("What certainly changed of the rest, per {operation}"), &changed));
    }
    let terminal = if changed.is_empty() { Terminal::Nothing } else { Terminal::First(1) };
    for (group, title) in groups {
        let all: Vec<&Measure> = of_group(compared, group).collect();
        if !all.is_empty() {
            blocks.push(table(&title, &all).folded());
        }
    }
    let title = "Ledger, calls, counters".to_owned();
    (!blocks.is_empty()).then(|| Section::new("compared-details", title, blocks, terminal))
}

fn table(title: &str, measures: &[&Measure]) -> Block {
    let columns = vec![
        Column::left("measured"),
        Column::right("before"),
        Column::right("after"),
        Column::right("change"),
        Column::right("interval"),
        Column::left("sure"),
    ];
    let row = |m: &&Measure| {
        let d: &Difference = &m.difference;
        let [a, b] = [d.a, d.b].map(|v| cells::value(m, v));
        vec![cells::name(m), a, b, cells::change(d), cells::interval(d), cells::mark(d)]
    };
    Block::Table { title: title.to_owned(), columns, rows: measures.iter().map(row).collect() }
}
