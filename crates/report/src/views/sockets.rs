// SPDX-License-Identifier: Apache-2.0
//! The target's sockets, by listener and by whom it asked. A page lets its reader sort them.

use diagnose::facts::listeners::Listener;
use diagnose::facts::sockets::{Group, Sockets};

use crate::numbers;
use crate::section::pictures::{Cell, Sortable};
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// A column: its head, and its cell of a row.
type Told = (&'static str, fn(&Group) -> Cell);

const COLUMNS: &[Told] = &[
    ("open", |g| average(g.open)),
    ("unread", |g| average(g.unread)),
    ("unsent", |g| average(g.unsent)),
    ("answer owed", |g| average(g.unanswered)),
    ("held by window", |g| part(Some(g.rwnd))),
    ("held by send buffer", |g| part(Some(g.sndbuf))),
    ("sent again", |g| count(Some(g.retransmits))),
    ("reset", |g| count(Some(g.resets))),
    ("shortest round trip", |g| time(g.min_rtt_ns)),
    ("acked after", |g| time(g.srtt_ns)),
    ("no delay", |g| part(g.nodelay)),
    ("keep alive", |g| part(g.keepalive)),
    ("accept queue", |g| of_listener(g, |l| Some(l.queue), average)),
    ("backlog", |g| of_listener(g, |l| l.backlog, |n| count(Some(n)))),
    ("dropped there", |g| of_listener(g, |l| l.drops, |n| count(Some(n)))),
];

/// The table; what is unknown everywhere has no column.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let sockets = material.case.fact::<Sockets>().ok()?;
    let rows = || sockets.groups.iter();
    let told = |(_, cell): &&Told| rows().any(|group| cell(group).value.is_some());
    let told: Vec<&Told> = COLUMNS.iter().filter(told).collect();
    let mut columns = vec![Column::left("where"), Column::left("opened by")];
    columns.extend(told.iter().map(|(head, _)| Column::right(head)));
    let row = |group: &Group| {
        let who = if group.accepted { "clients" } else { "the target" };
        let mut cells = vec![Cell::words(group.name.trim_start_matches("tcp ")), Cell::words(who)];
        cells.extend(told.iter().map(|(_, cell)| cell(group)));
        cells
    };
    let text =
        "TCP, by listener and peer; how many there are and in which state is an average over all looks.".to_owned();
    let table = Sortable { title: String::new(), columns, rows: rows().map(row).collect() };
    let some = !table.rows.is_empty();
    let blocks = vec![Block::Text { text, tone: Tone::Dim }, Block::Sortable(table)];
    some.then(|| Section::new("sockets", "Sockets", blocks, Terminal::Nothing))
}

fn average(value: f64) -> Cell {
    Cell::number(Some(value), |value| match value {
        v if v.fract() == 0.0 || v >= 99.5 => numbers::number(v.round()),
        v if v < 0.01 => "<0.01".to_owned(),
        v => format!("{v:.2}"),
    })
}

fn count(value: Option<f64>) -> Cell {
    Cell::number(value, numbers::number)
}

fn part(value: Option<f64>) -> Cell {
    Cell::number(value, numbers::share)
}

fn time(ns: Option<f64>) -> Cell {
    Cell::number(ns.map(|ns| ns / 1e9), numbers::seconds)
}

fn of_listener(group: &Group, value: fn(&Listener) -> Option<f64>, show: fn(f64) -> Cell) -> Cell {
    group.listener.as_ref().and_then(value).map(show).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::tests::section;

    #[test]
    fn what_is_unknown_everywhere_has_no_column() {
        let text = "meta length_ns=2e9 target.listen=[\"tcp 0.0.0.0:80\"]
            connection t_ns=2e9 role=accepted port=80 looks=10 open=25 unsent=5 nodelay=1 srtt_ns=1e7
            connection t_ns=2e9 role=made peer=10.0.0.9:1 looks=10 open=10";
        let section = section(view, text).unwrap();
        let Block::Sortable(table) = &section.blocks[1] else { panic!("no table") };
        let heads: Vec<&str> = table.columns.iter().map(|column| column.title.as_str()).collect();
        assert!(heads.contains(&"no delay") && !heads.contains(&"accept queue"), "{heads:?}");
        let texts = table.texts();
        assert_eq!(texts[0][..4], ["0.0.0.0:80", "clients", "2.50", "0"]);
        assert_eq!((texts[1][0].as_str(), texts[1].last().map(String::as_str)), ("10.0.0.9:1", Some("")));
        assert!(super::super::tests::section(view, "").is_none());
    }
}
