// SPDX-License-Identifier: Apache-2.0
//! Who ran while the target wanted a CPU. Shown only where the target had to wait: otherwise it is nobody's fault.

use diagnose::facts::cpus::{Cpus, Neighbour};
use diagnose::ledger::threads::Threads;

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// Below these shares of its CPU demand, and of the capture, waiting for one does not matter.
const OF_DEMAND: f64 = 0.01;
const OF_CAPTURE: f64 = 0.02;

/// A process that is less than this part of the waiting is not worth a row of its own beside others of its name.
const SMALL: f64 = 0.1;

/// Less than this part of the waiting is not worth a row at all.
const SLIVER: f64 = 0.01;

/// Rows on the page.
const MOST: usize = 20;

/// Processes on a terminal.
const FIRST: usize = 5;

/// The processes in the way.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let (cpus, threads) = (material.case.fact::<Cpus>().ok()?, material.case.fact::<Threads>().ok()?);
    let waited_ns = threads.total.waiting_for_cpu_ns();
    let in_the_way = fold(&cpus.neighbours, waited_ns);
    let matters = (threads.total.demand_ns() * OF_DEMAND).max(material.case.length_ns() * OF_CAPTURE);
    if waited_ns <= matters || in_the_way.is_empty() {
        return None;
    }
    let in_the_way = &in_the_way[..in_the_way.len().min(MOST)];
    let (first, others) = in_the_way.split_at(in_the_way.len().min(FIRST));
    let mut blocks = vec![table("", first, waited_ns), own(cpus.own_delay_ns, waited_ns)];
    if !others.is_empty() {
        blocks.push(table("Others", others, waited_ns));
    }
    let title = "Who had the CPU while the target wanted it".to_owned();
    Some(Section::new("neighbours", title, blocks, Terminal::First(2)))
}

/// One or more processes as a row.
struct InTheWay {
    comm: String,
    cgroup: String,
    /// The first one's id.
    pid: u32,
    processes: usize,
    delayed_ns: f64,
}

/// Processes by the time that they were in the way. Small ones of one name, such as the many brief children of a
/// build, are one row.
fn fold(neighbours: &[Neighbour], waited_ns: f64) -> Vec<InTheWay> {
    let mut rows: Vec<InTheWay> = Vec::new();
    for n in neighbours.iter().filter(|n| n.delayed_ns > 0.0) {
        let small = n.delayed_ns < waited_ns * SMALL;
        let same = rows.iter_mut().find(|row| {
            small
                && row.delayed_ns < waited_ns * SMALL * row.processes as f64
                && row.comm == n.comm
                && row.cgroup == n.cgroup
        });
        if let Some(row) = same {
            (row.processes, row.delayed_ns) = (row.processes + 1, row.delayed_ns + n.delayed_ns);
        } else {
            let (comm, cgroup) = (n.comm.clone(), n.cgroup.clone());
            rows.push(InTheWay { comm, cgroup, pid: n.pid, processes: 1, delayed_ns: n.delayed_ns });
        }
    }
    rows.sort_by(|a, b| b.delayed_ns.total_cmp(&a.delayed_ns).then(a.pid.cmp(&b.pid)));
    let slivers = rows.split_off(rows.partition_point(|row| row.delayed_ns >= waited_ns * SLIVER));
    match slivers.len() {
        0 | 1 => rows.extend(slivers),
        _ => rows.push(InTheWay {
            comm: "(others)".to_owned(),
            cgroup: String::new(),
            pid: 0,
            processes: slivers.iter().map(|row| row.processes).sum(),
            delayed_ns: slivers.iter().map(|row| row.delayed_ns).sum(),
        }),
    }
    rows
}

fn table(title: &str, rows: &[InTheWay], waited_ns: f64) -> Block {
    let row = |n: &InTheWay| {
        let comm = if n.comm.is_empty() { "(ended before it could be asked)" } else { &n.comm };
        let share = numbers::share((n.delayed_ns / waited_ns).min(1.0));
        let pid = if n.processes == 1 { n.pid.to_string() } else { format!("{} of them", n.processes) };
        vec![comm.to_owned(), pid, numbers::seconds(n.delayed_ns / 1e9), share, n.cgroup.clone()]
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
    fn brief_children_of_one_name_are_one_row() {
        let mut text = WAY.replace("delayed_ns=30", "delayed_ns=8") + "\n";
        for pid in 100..112 {
            text += &format!("neighbour pid={pid} comm=cc1 cgroup=/build delayed_ns=1\n");
        }
        let section = section(super::view, &text).unwrap();
        assert_eq!(
            tables(&section)[0][1..],
            [["cc1", "12 of them", "12.0 ns", "24.0 %", "/build"], ["rustc", "9", "8.00 ns", "16.0 %", "/build"]]
        );
    }

    #[test]
    fn slivers_are_one_row() {
        let mut text = WAY.to_owned() + "\n";
        for pid in 100..103 {
            text += &format!("neighbour pid={pid} comm=brief{pid} delayed_ns=0.3\n");
        }
        let rows = &tables(&section(super::view, &text.replace("=0.3", "=0")).unwrap())[0];
        assert_eq!(rows.len(), 2, "nobody was in the way for no time");
        let large = text.replace("delayed_ns=30", "delayed_ns=3000").replace("run_queue_ns=50", "run_queue_ns=5000");
        let rows = &tables(&section(super::view, &large.replace("=0.3", "=20")).unwrap())[0];
        assert_eq!(rows[2][..3], ["(others)", "3 of them", "60.0 ns"]);
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
