// SPDX-License-Identifier: Apache-2.0
//! System calls: which ones CPU time went into (sampled), and how many there were, with which arguments and results
//! (counted in short windows). The two are told apart, for a sample is of time and a count is of calls.

mod details;
mod example;
mod totals;

use diagnose::facts::calls::{Calls, Counted, Key, Windows};
use recording::tables::Cost;

use crate::numbers;
use crate::section::{Block, Section, Terminal, Tone};

use super::Material;
use super::thread_names::ThreadNames;

/// Calls with details of their own on the page: histograms and examples.
const DETAILED: usize = 4;

/// The calls.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let case = material.case;
    let calls = case.fact::<Calls>().ok()?;
    let names = ThreadNames::of(case);
    let mut counted: Vec<(&Key, &Counted)> = calls.counted.iter().filter(|(_, c)| c.calls > 0).collect();
    counted.sort_by(|a, b| b.1.calls.cmp(&a.1.calls).then(a.0.cmp(b.0)));
    let mut blocks = Vec::new();
    if !counted.is_empty() {
        blocks.push(totals::counted(&counted, &names));
    }
    blocks.extend(totals::sampled(case, &calls, &names));
    if blocks.is_empty() {
        return None;
    }
    blocks.insert(0, windows(material, &calls.windows));
    let terminal = Terminal::First(2);
    blocks.extend(details::arguments(&counted, &names));
    blocks.extend(details::descriptors(&counted, &names));
    for (key, call) in counted.iter().take(DETAILED) {
        blocks.extend(details::histograms(&format!("{} by {}", call.name, names.full(key.0, key.1)), call));
    }
    blocks.extend(example::list(case, &names));
    Some(Section::new("calls", "System calls", blocks, terminal))
}

/// How the calls were seen, and what that cost.
fn windows(material: &Material<'_>, windows: &Windows) -> Block {
    let length_s = windows.open_ns / 1e9;
    let text = if windows.count == 0 {
        "No call was counted, only sampled: samples show which calls took CPU time and with which arguments, not how many \
         there were. `--calls always` counts them."
            .to_owned()
    } else {
        let share = if material.case.seconds() > 0.0 { length_s / material.case.seconds() } else { 0.0 };
        format!(
            "Counted: every call in {} of together {}, {} of the capture{}. Rates are those inside the \
             windows; per find: empty calls for each that found something.{}",
            if windows.count == 1 { "1 window".to_owned() } else { format!("{} windows", windows.count) },
            numbers::seconds(length_s),
            numbers::share(share),
            cost(material.case.recording.rows()),
            lost(windows),
        )
    };
    Block::Text { text, tone: Tone::Dim }
}

/// What the programs behind the windows took, where the capture says so.
fn cost(rows: &[Cost]) -> String {
    let programs = || rows.iter().filter(|row| row.what == "bpf:syscalls");
    let (cpu_ns, runs) = programs().fold((0.0, 0.0), |sum, row| (sum.0 + row.cpu_ns as f64, sum.1 + row.runs as f64));
    if runs <= 0.0 {
        return String::new();
    }
    format!(
        "; that took {} of CPU time, {} a call",
        numbers::seconds(cpu_ns / 1e9),
        numbers::seconds(cpu_ns / runs / 1e9)
    )
}

fn lost(windows: &Windows) -> String {
    match windows.lost {
        0 => String::new(),
        lost => format!(" {} calls found no room in the table and are missing.", numbers::number(lost as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{section, tables};
    use super::*;

    const CALLS: &str = "meta host.arch=x86_64 length_ns=10e9
        call_window id=1 kind=results length_ns=5e8 calls=1000 lost=10
        call_window id=2 kind=latency length_ns=1e8 calls=90
        cost what=bpf:syscalls runs=1000 cpu_ns=50000
        thread pid=1 tid=2 comm=\"re\\u001b[2Jactor\" wall_ns=10e9
        call window=1 pid=1 tid=2 syscall=232 fd=4 argument_kind=timeout argument=0 result=0 count=900
        call window=1 pid=1 tid=2 syscall=232 fd=5 argument_kind=timeout argument=-1 result=2 count=50
        call window=1 pid=1 tid=2 syscall=45 fd=6 argument_kind=size argument=1024 result=512 count=45
        call window=1 pid=1 tid=2 syscall=45 fd=6 argument_kind=size argument=1024 result=-11 count=5
        call_latency window=2 pid=1 tid=2 syscall=232 from_ns=128 count=80
        call_latency window=2 pid=1 tid=2 syscall=232 from_ns=256 count=8
        call_example pid=1 tid=2 syscall=232 args=[4,140737488347136,1,0,0,8] result=0
        sample pid=1 tid=2 kernel=true syscall=232 args=[4,0,1,0] weight=3
        sample pid=1 tid=2 kernel=true syscall=1 weight=1";

    #[test]
    fn counts_are_those_of_the_fact() {
        let section = section(view, CALLS).unwrap();
        let Block::Text { text, .. } = &section.blocks[0] else { panic!("no words") };
        assert!(text.contains("2 windows of together 600 ms, 6.0 % of the capture"), "{text}");
        assert!(
            text.contains("50.0 µs of CPU time, 50.0 ns a call") && text.contains("10 calls found no room"),
            "{text}"
        );
        let tables = tables(&section);
        assert_eq!(tables[0][1][1..], ["epoll_wait", "1,900", "94.7 %", "18", "0 (94.7 %)"]);
        assert_eq!(tables[0][2][1..4], ["recvfrom", "100", "10.0 %"]);
        assert_eq!(tables[1][1][1..], ["epoll_wait", "75.0 %", "0: 100 %", ""]);
        assert_eq!(tables[2][2][1..], ["recvfrom", "1 KiB to 2 KiB: 100 %", "512..1023: 90.0 %, EAGAIN: 10.0 %"]);
        assert_eq!(tables[3][1][1..], ["epoll_wait", "4", "900", "100 %"]);
        let labels: Vec<_> = section
            .blocks
            .iter()
            .filter_map(|b| if let Block::Histogram { title, .. } = b { Some(title.as_str()) } else { None })
            .collect();
        assert!(labels[2].ends_with("time taken") && labels.len() == 4, "{labels:?}");
        assert_eq!(tables[4][1][2], "epoll_wait(4, .., 1, 0) = 0");
    }

    #[test]
    fn sampled_alone_says_so() {
        let section = section(view, "meta host.arch=x86_64\nsample pid=1 tid=2 kernel=true syscall=0").unwrap();
        let Block::Text { text, .. } = &section.blocks[0] else { panic!("no words") };
        assert!(text.contains("only sampled"));
        assert_eq!(tables(&section).len(), 1);
    }

    #[test]
    fn no_calls_no_section() {
        assert!(section(view, "meta host.arch=x86_64\nsample pid=1 tid=2 syscall=-1").is_none());
    }
}
