// SPDX-License-Identifier: Apache-2.0
//! The target's sockets by state, by listener and by whom it asked, as the capture began and as it ended.

use diagnose::facts::socket_states::{InState, SocketStates};

use crate::numbers;
use crate::section::pictures::{Cell, Sortable};
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// The table.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let states = material.case.fact::<SocketStates>().ok()?;
    let count = |value: f64| Cell::number(Some(value), numbers::number);
    let row = |of: &InState| {
        let who = if of.accepted { "clients" } else { "the target" };
        let name = of.name.trim_start_matches("tcp ");
        vec![Cell::words(name), Cell::words(who), Cell::words(&of.state), count(of.counts.0), count(of.counts.1)]
    };
    let columns = vec![
        Column::left("where"),
        Column::left("opened by"),
        Column::left("state"),
        Column::right("at the begin"),
        Column::right("at the end"),
    ];
    let text = "TCP, in the kernel's words: in TIME_WAIT this end closed first, in CLOSE_WAIT the other end has, and the program not yet."
        .to_owned();
    let table = Sortable { title: String::new(), columns, rows: states.own.iter().map(row).collect() };
    let some = !table.rows.is_empty();
    let blocks = vec![Block::Text { text, tone: Tone::Dim }, Block::Sortable(table)];
    some.then(|| Section::new("socket-states", "Sockets by state", blocks, Terminal::Nothing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::tests::section;

    #[test]
    fn a_row_for_each_state() {
        let text = "meta length_ns=5e9 target.listen=[\"tcp 0.0.0.0:80\"]
            socket_state state=ESTABLISHED role=accepted port=80 count=40
            socket_state t_ns=5e9 state=ESTABLISHED role=accepted port=80 count=42";
        let section = section(view, text).unwrap();
        let Block::Sortable(table) = &section.blocks[1] else { panic!("no table") };
        assert_eq!(table.texts()[0], ["0.0.0.0:80", "clients", "ESTABLISHED", "40", "42"]);
        assert!(super::super::tests::section(view, "").is_none());
    }
}
