// SPDX-License-Identifier: Apache-2.0
//! Thread by thread: which share of its life each ran, wanted to run, was held, and was blocked.

use diagnose::ledger::threads::{ThreadLedger, Threads};

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// Threads on a terminal.
const FIRST: usize = 6;

/// Threads on the page.
const MOST: usize = 200;

/// A thread that had or wanted a CPU for less than this share of its life is not among the first.
const HARDLY: f64 = 0.001;

/// A column: its head, and its share of a thread's life.
type Line = (&'static str, fn(&ThreadLedger) -> f64);

/// The columns, short enough for a terminal; one that is hardly anything for every thread is left out. `CPU, any` is of
/// threads that no sample hit, so that user and kernel mode cannot be told apart.
const LINES: &[Line] = &[
    ("user", |t| t.lines.user_ns),
    ("kernel", |t| t.lines.kernel_ns + t.lines.kernel_in_wait_calls_ns),
    ("CPU, any", |t| t.lines.cpu_unsplit_ns),
    ("queue", |t| t.lines.run_queue_ns),
    ("preempted", |t| t.lines.preempted_ns),
    ("throttled", |t| t.lines.throttled_ns),
    ("blocked", |t| t.lines.blocked_ns.values().sum()),
];

/// The threads, those that had or wanted a CPU most first.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let ledger = material.case.fact::<Threads>().ok()?;
    let threads: Vec<&ThreadLedger> = ledger.threads.iter().filter(|t| t.lines.wall_ns > 0.0).collect();
    if threads.is_empty() {
        return None;
    }
    let busy = threads.iter().take(FIRST).take_while(|t| t.lines.demand_ns() >= t.lines.wall_ns * HARDLY).count();
    let (first, others) = threads.split_at(busy.max(1));
    let seconds = material.case.seconds();
    let mut blocks = vec![table("Shares of each thread\u{2019}s own time", first, seconds)];
    if !others.is_empty() {
        let shown = &others[..others.len().min(MOST)];
        blocks.push(rest(others));
        blocks.push(table("The other threads", shown, seconds));
    }
    let terminal = Terminal::First(2);
    Some(Section::new("threads", "Threads", blocks, terminal))
}

/// The other threads in a line.
fn rest(others: &[&ThreadLedger]) -> Block {
    let sum = |line: fn(&ThreadLedger) -> f64| others.iter().map(|t| line(t)).sum::<f64>();
    let (demand, wall) = (sum(|t| t.lines.demand_ns()), sum(|t| t.lines.wall_ns));
    let count: u64 = others.iter().map(|t| t.instances.max(1)).fold(0, u64::saturating_add);
    let who = format!("{} other thread{}", numbers::number(count as f64), if count == 1 { "" } else { "s" });
    let text = if demand > 0.0 {
        format!("{who} had or wanted a CPU for {} of the time.", numbers::share(demand / wall))
    } else {
        format!("{who} neither had nor wanted a CPU.")
    };
    Block::Text { text, tone: Tone::Dim }
}

fn table(title: &str, threads: &[&ThreadLedger], seconds: f64) -> Block {
    let used: Vec<&Line> =
        LINES.iter().filter(|(_, ns)| threads.iter().any(|t| ns(t) >= t.lines.wall_ns * HARDLY)).collect();
    let mut columns = vec![Column::left("thread")];
    columns.extend(used.iter().map(|(head, _)| Column::right(head)));
    columns.push(Column::right("switches/s"));
    let rows = threads.iter().map(|t| {
        let mut cells = vec![name(t)];
        cells.extend(used.iter().map(|(_, ns)| numbers::share(ns(t) / t.lines.wall_ns)));
        let switches = t.voluntary_switches.saturating_add(t.involuntary_switches) as f64;
        // Of those that lived shortly, many make up a row.
        let life = if t.tid == 0 { seconds } else { t.lines.wall_ns / 1e9 };
        cells.push(if life > 0.0 { numbers::number((switches / life).round()) } else { String::new() });
        cells
    });
    Block::Table { title: title.to_owned(), columns, rows: rows.collect() }
}

fn name(t: &ThreadLedger) -> String {
    match t.tid {
        0 => format!("{} ({} short-lived)", t.comm, numbers::number(t.instances as f64)),
        tid => format!("{}/{tid}", t.comm),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{section, tables};

    const THREADS: &str = "meta host.arch=x86_64 length_ns=1e9
        thread pid=1 tid=2 comm=worker wall_ns=1e9 cpu_ns=5e8 run_queue_ns=1e8 blocked_ns=4e8 voluntary_switches=90 involuntary_switches=10
        thread pid=1 tid=1 comm=main wall_ns=1e9 blocked_ns=1e9
        thread comm=sh instances=12 wall_ns=1e8 cpu_ns=9e7 blocked_ns=1e7
        sample pid=1 tid=2 weight=4
        sample pid=1 tid=2 kernel=true syscall=1 weight=1";

    #[test]
    fn shares_are_those_of_the_ledger() {
        let section = section(super::view, THREADS).unwrap();
        let tables = tables(&section);
        assert_eq!(tables[0][0], ["thread", "user", "kernel", "CPU, any", "queue", "blocked", "switches/s"]);
        assert_eq!(tables[0][1], ["worker/2", "40.0 %", "10.0 %", "0 %", "10.0 %", "40.0 %", "100"]);
        assert_eq!(tables[0][2][..4], ["sh (12 short-lived)", "0 %", "0 %", "90.0 %"]);
        assert_eq!(tables[1][1], ["main/1", "100 %", "0"]);
    }

    #[test]
    fn no_threads_no_section() {
        assert!(section(super::view, "").is_none());
        assert!(section(super::view, "thread pid=1 tid=1 comm=x").is_none());
    }
}
