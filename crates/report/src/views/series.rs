// SPDX-License-Identifier: Apache-2.0
//! How it went over time: what the target's threads had and wanted, and what the machine's CPUs did.

use std::collections::BTreeMap;

use diagnose::ledger::threads::{Slice, Threads};
use recording::counters::{Key, stat};
use recording::tables::Counter;

use crate::section::{Block, Line, Section, Terminal};

use super::Material;

/// A line of the target's chart: its name, and its time within a slice.
type Part = (&'static str, fn(&Slice) -> f64);

const TARGET: &[Part] = &[
    ("on CPU", |s| s.cpu_ns),
    ("run queue", |s| s.run_queue_ns),
    ("preempted", |s| s.preempted_ns),
    ("throttled", |s| s.throttled_ns),
    ("interrupted", |s| s.interrupted_ns),
];

/// A line that never reaches this many CPUs or threads cannot be seen in a chart.
const VISIBLE: f64 = 0.002;

/// Counters of `/proc/stat` by the line that they are added to.
const HOST: &[(&str, &[Key])] = &[
    ("user", &[stat::USER_NS, stat::NICE_NS]),
    ("system", &[stat::SYSTEM_NS]),
    ("interrupts", &[stat::IRQ_NS, stat::SOFTIRQ_NS]),
    ("steal", &[stat::STEAL_NS]),
    ("idle", &[stat::IDLE_NS, stat::IOWAIT_NS]),
];

/// The charts.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let mut blocks = Vec::new();
    if let Ok(threads) = material.case.fact::<Threads>() {
        let slices: Vec<&Slice> = threads.slices.iter().filter(|s| s.length_ns > 0.0).collect();
        blocks.extend(chart("The target had or wanted", TARGET, &slices));
        blocks.extend(chart("Threads blocked", &[("blocked", |s| s.blocked_ns)], &slices));
    }
    blocks.extend(host(material.case.recording.rows::<Counter>()));
    let title = "Over time".to_owned();
    (!blocks.is_empty()).then(|| Section::new("series", title, blocks, Terminal::Nothing))
}

/// Lines that cannot be seen are left out; one point is no line.
fn chart(title: &str, parts: &[Part], slices: &[&Slice]) -> Option<Block> {
    let line = |(label, ns): &Part| {
        let values: Vec<f64> = slices.iter().map(|s| ns(s) / s.length_ns).collect();
        values.iter().any(|v| *v >= VISIBLE).then(|| Line { label: (*label).to_owned(), values })
    };
    let lines: Vec<Line> = parts.iter().filter_map(line).collect();
    let x: Vec<f64> = slices.iter().map(|s| s.t_ns as f64 / 1e9).collect();
    let unit = if parts.len() > 1 { "CPUs" } else { "threads" }.to_owned();
    let (title, stacked) = (title.to_owned(), lines.len() > 1);
    (x.len() > 1 && !lines.is_empty()).then_some(Block::Series { title, unit, x, lines, stacked })
}

/// What all CPUs did between two readings, in CPUs. A counter is written only when it changed, so its last value
/// holds until the next one.
fn host(counters: &[Counter]) -> Option<Block> {
    let mut readings: BTreeMap<u64, BTreeMap<&str, f64>> = BTreeMap::new();
    for row in counters.iter().filter(|c| c.source == stat::SOURCE && c.entity == "cpu" && c.value.is_finite()) {
        readings.entry(row.t_ns).or_default().insert(&row.name, row.value);
    }
    let mut known: BTreeMap<&str, f64> = BTreeMap::new();
    let (mut x, mut before_ns) = (Vec::new(), None);
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); HOST.len()];
    for (t_ns, changed) in readings {
        let grew = |key: &Key| Some((changed.get(key.name)? - known.get(key.name)?).max(0.0));
        if let Some(length_ns) = before_ns.map(|before: u64| (t_ns - before) as f64) {
            x.push(t_ns as f64 / 1e9);
            for ((_, keys), line) in HOST.iter().zip(&mut values) {
                line.push(keys.iter().filter_map(grew).sum::<f64>() / length_ns);
            }
        }
        known.extend(changed);
        before_ns = Some(t_ns);
    }
    let lines =
        HOST.iter().zip(values).map(|((label, _), values)| Line { label: (*label).to_owned(), values }).collect();
    let (title, unit) = ("CPUs of the host".to_owned(), "CPUs".to_owned());
    (x.len() > 1).then_some(Block::Series { title, unit, x, lines, stacked: true })
}

#[cfg(test)]
mod tests {
    use super::super::tests::section;
    use super::*;

    fn lines(block: &Block) -> Vec<(String, Vec<f64>)> {
        let Block::Series { lines, .. } = block else { panic!("no series") };
        lines.iter().map(|line| (line.label.clone(), line.values.clone())).collect()
    }

    #[test]
    fn cores_by_slice() {
        let section = section(
            view,
            "thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=5e8 run_queue_ns=1e8 blocked_ns=4e8
             thread t_ns=3e9 pid=1 tid=1 wall_ns=2e9 cpu_ns=2e9",
        )
        .unwrap();
        let expected = [("on CPU".to_owned(), vec![0.5, 1.0]), ("run queue".to_owned(), vec![0.1, 0.0])];
        assert_eq!(lines(&section.blocks[0]), expected);
        assert_eq!(lines(&section.blocks[1]), [("blocked".to_owned(), vec![0.4, 0.0])]);
    }

    #[test]
    fn a_counter_that_stands_still_is_zero() {
        let section = section(
            view,
            "counter t_ns=0 source=proc/stat entity=cpu name=user_ns value=5e8
             counter t_ns=0 source=proc/stat entity=cpu name=idle_ns value=1e9
             counter t_ns=1e9 source=proc/stat entity=cpu name=idle_ns value=3e9
             counter t_ns=2e9 source=proc/stat entity=cpu name=user_ns value=2e9
             counter t_ns=2e9 source=proc/stat entity=cpu name=idle_ns value=3.5e9",
        )
        .unwrap();
        let lines = lines(&section.blocks[0]);
        assert_eq!((&lines[0].1, &lines[4].1), (&vec![0.0, 1.5], &vec![2.0, 0.5]));
    }

    #[test]
    fn one_point_is_no_line() {
        assert!(section(view, "thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=5e8").is_none());
        assert!(section(view, "").is_none());
    }
}
