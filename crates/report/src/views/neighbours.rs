// SPDX-License-Identifier: Apache-2.0
//! Who ran while the target wanted a CPU. Shown only where the target had to wait: otherwise it is nobody's fault.

use diagnose::facts::cpus::{Cpus, Neighbour};
use diagnose::ledger::threads::Threads;

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// Below these shares of the time that the target wanted a CPU, and of the capture, waiting for one does not matter.
const OF_DEMAND: f64 = 0.01;
const OF_CAPTURE: f64 = 0.02;

/// Processes on the page.
const MOST: usize = 20;

/// Processes on a terminal.
const FIRST: usize = 5;

/// The processes in the way.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let (cpus, threads) = (material.case.fact::<Cpus>().ok()?, material.case.fact::<Threads>().ok()?);
    let waited_ns = threads.total.waiting_for_cpu_ns();
    let in_the_way: Vec<&Neighbour> = cpus.neighbours.iter().filter(|n| n.delayed_ns > 0.0).take(MOST).collect();
    let matters = (threads.total.demand_ns() * OF_DEMAND).max(material.case.length_ns() * OF_CAPTURE);
    if waited_ns <= matters || in_the_way.is_empty() {
        return None;
    }
    let (first, others) = in_the_way.split_at(in_the_way.len().min(FIRST));
    let mut blocks = vec![table("", first, waited_ns), own(cpus.own_delay_ns, waited_ns)];
    if !others.is_empty() {
        blocks.push(table("Others", others, waited_ns));
    }
    let title = "Who had the CPU while the target wanted it".to_owned();
    Some(Section { id: "neighbours", title, blocks, terminal: Terminal::First(2) })
}

fn table(title: &str, rows: &[&Neighbour], waited_ns: f64) -> Block {
    let row = |n: &&Neighbour| {
        let comm = if n.comm.is_empty() { "(ended before it could be asked)" } else { &n.comm };
        let share = numbers::share((n.delayed_ns / waited_ns).min(1.0));
        vec![comm.to_owned(), n.pid.to_string(), numbers::seconds(n.delayed_ns / 1e9), share, n.cgroup.clone()]
    };
    let columns = vec![
        Column::left("process"),
        Column::right("pid"),
        Column::right("delayed it by"),
        Column::right("of its waiting"),
        Column::left("cgroup"),
    ];
    Block::Table { title: title.to_owned(), columns, rows: rows.iter().map(row).collect() }
}

fn own(own_ns: f64, waited_ns: f64) -> Block {
    let text = format!(
        "The target waited {} for a CPU in all; behind its own threads {}.",
        numbers::seconds(waited_ns / 1e9),
        numbers::seconds(own_ns / 1e9)
    );
    Block::Text { text, tone: Tone::Dim }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{section, tables};

    const WAY: &str = "meta length_ns=100
        thread pid=1 tid=1 comm=a wall_ns=100 cpu_ns=50 run_queue_ns=50
        neighbour pid=9 comm=rustc cgroup=/build delayed_ns=30 samples=3
        neighbour pid=1 comm=a own=true delayed_ns=10
        neighbour pid=8 comm=quiet samples=7";

    #[test]
    fn who_was_in_the_way() {
        let section = section(super::view, WAY).unwrap();
        assert_eq!(tables(&section)[0][1..], [["rustc", "9", "30.0 ns", "60.0 %", "/build"]]);
    }

    #[test]
    fn silent_where_the_wait_is_short() {
        assert!(section(super::view, &WAY.replace("length_ns=100", "length_ns=1e9")).is_none());
    }

    #[test]
    fn silent_where_nobody_had_to_wait() {
        assert!(section(super::view, &WAY.replace("run_queue_ns=50", "blocked_ns=50")).is_none());
        assert!(section(super::view, "").is_none());
    }
}
