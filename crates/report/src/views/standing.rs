// SPDX-License-Identifier: Apache-2.0
//! Who stood still as the capture ended, and where in the program: for something else than work, as far as that is told.

use diagnose::facts::stacks::Stacks;
use diagnose::facts::standers::{Place, Standers};
use diagnose::walk::LOCK;

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// Places on the page.
const MOST: usize = 30;

/// Functions of a place.
const FUNCTIONS: usize = 3;

/// A table of places. A terminal shows it where requests are in hand there, or locks are waited for: elsewhere it may be how a pool waits
/// for work.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let (standers, stacks) = (material.case.fact::<Standers>().ok()?, material.case.fact::<Stacks>().ok()?);
    let places = standers.places(&stacks);
    if places.is_empty() {
        return None;
    }
    let keeps = |place: &Place<'_>| place.requests() > 0.0 || place.threads[0].who.fd_kind == LOCK;
    let terminal = if places.iter().any(keeps) { Terminal::First(1) } else { Terminal::Nothing };
    let columns = vec![
        Column::right("threads"),
        Column::left("of"),
        Column::left("stand in"),
        Column::right("for up to"),
        Column::right("requests"),
        Column::left("called from"),
    ];
    let rows = places.iter().take(MOST).map(row).collect();
    let text = "As the capture ended; requests are those that these threads have read and that nobody has answered. A pool without \
                work stands in a futex too."
        .to_owned();
    let blocks = vec![Block::Table { title: String::new(), columns, rows }, Block::Text { text, tone: Tone::Dim }];
    Some(Section::new("standing", "Who stood still", blocks, terminal))
}

fn row(place: &Place<'_>) -> Vec<String> {
    let first = place.threads[0];
    let of = format!("{}/{}", first.who.comm, first.who.pid);
    let requests = place.requests();
    let requests = if requests > 0.0 { numbers::number(requests) } else { String::new() };
    let from = place.from.iter().take(FUNCTIONS).cloned().collect::<Vec<_>>().join(" <- ");
    let longest = numbers::seconds(first.wait_ns / 1e9);
    vec![place.threads.len().to_string(), of, first.who.call_words(), longest, requests, from]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{section, tables};
    use super::*;

    #[test]
    fn places_of_threads_that_stand() {
        let text = "meta host.arch=x86_64 length_ns=4e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            frame id=1 symbol=debit module=/svc kind=native
            stack id=1 frames=[1] complete=true
            standing pid=1 tid=2 comm=w wait_ns=3e9 syscall=202 args=[64,128,7,0] user_stack=1 requests=1
            standing pid=1 tid=3 comm=w wait_ns=2e9 syscall=202 args=[64,128,7,0] user_stack=1
            standing pid=1 tid=4 comm=l wait_ns=4e9 syscall=232";
        let shown = section(view, text).unwrap();
        assert_eq!(tables(&shown)[0][1..], [["2", "w/1", "futex", "3.00 s", "1", "debit"]]);
        assert_eq!(shown.terminal, Terminal::First(1));
        let idle = section(view, &text.replace("requests=1", "")).unwrap();
        assert_eq!(idle.terminal, Terminal::Nothing);
        assert!(section(view, "standing pid=1 tid=4 comm=l wait_ns=4e9 syscall=232\nmeta host.arch=x86_64").is_none());
    }
}
