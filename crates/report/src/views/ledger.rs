// SPDX-License-Identifier: Apache-2.0
//! Where the threads' time went: lines that add up to the whole, what is unknown included.

use std::collections::BTreeMap;

use diagnose::Case;
use diagnose::ledger::largest::active_ns;
use diagnose::phrases::ledger_lines::told;

use crate::numbers;
use crate::section::{Bar, Block, Section, Terminal, Tone};

use super::Material;

/// The lines that have a customary place and words; others follow by size under their own name.
const LINES: &[(&str, &str, Tone)] = &[
    ("user", "on-CPU, user", Tone::Plain),
    ("kernel", "on-CPU, kernel", Tone::Plain),
    ("kernel_in_wait_calls", "on-CPU, in wait calls", Tone::Warn),
    ("cpu_unsplit", "on-CPU, not sampled", Tone::Plain),
    ("run_queue", "run-queue wait", Tone::Warn),
    ("preempted", "preempted", Tone::Warn),
    ("throttled", "throttled by quota", Tone::Bad),
    ("stopped", "stopped, traced or frozen", Tone::Bad),
];

/// Below this share of the whole, what the lines leave over is rounding.
const ROUNDING: f64 = 0.0005;

/// The thread ledger.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let ledger = &material.verdict.ledger.threads;
    let mut parts = parts(ledger);
    let sum: f64 = parts.iter().map(|part| part.value).sum();
    let total = ledger.get("wall").copied().unwrap_or(sum).max(sum);
    if total <= 0.0 {
        return None;
    }
    if total - sum > total * ROUNDING {
        parts.push(bar("unaccounted", total - sum, Tone::Warn));
    }
    let error = material.verdict.coverage.user_share_error;
    let split = format!("; user and kernel told apart within ± {}", numbers::share(error));
    let active = match active(material) {
        none if none <= 0.0 => String::new(),
        // What the walk picked is counted up to the whole; beside what the ledger measured it may round to more.
        some => format!(", {} of it active", numbers::seconds(some.min(total))),
    };
    let title = format!("{} of thread time{active}{}", numbers::seconds(total), if error > 0.0 { &split } else { "" });
    let bars = Block::Bars { title, unit: "s".to_owned(), total, parts };
    let mut blocks = vec![bars];
    let text = |text: String| Block::Text { text, tone: Tone::Plain };
    blocks.extend(told_of_lines(material.case, ledger, total).into_iter().map(text));
    // A neutral verdict has no evidence section: what more there is to say of it is about where the time goes.
    let detail = &material.verdict.detail;
    blocks.extend((!detail.is_empty()).then(|| Block::Text { text: detail.clone(), tone: Tone::Plain }));
    let mut short = blocks.clone();
    short.iter_mut().for_each(join_slivers);
    Some(Section::new("ledger", "Where the time went", blocks, Terminal::All).kept_as(short))
}

/// Active time, s: the whole of the share that is accused, so that the two agree; else by the ledger.
fn active(material: &Material<'_>) -> f64 {
    let explains = material.verdict.findings.first().map(|finding| &finding.explains);
    match explains.filter(|explains| explains.of == "active time" && explains.share > 0.0) {
        Some(explains) => explains.seconds / explains.share,
        None => active_ns(material.case) / 1e9,
    }
}

/// From this share of the whole on, what a line means is said where its name alone does not.
const WORTH_A_WORD: f64 = 0.01;

fn told_of_lines(case: &Case<'_>, ledger: &BTreeMap<String, f64>, total: f64) -> Vec<String> {
    let lines = ["blocked_kernel_lock", "blocked_file_system", "blocked_file_lock", "stopped"];
    let is_large = |line: &str| ledger.get(line).is_some_and(|value| *value >= total * WORTH_A_WORD);
    let large = lines.into_iter().filter(|line| is_large(line));
    large.filter_map(|line| Some(format!("{}: {}.", words(line), told(case, line)?))).collect()
}

fn parts(ledger: &BTreeMap<String, f64>) -> Vec<Bar> {
    let mut parts: Vec<Bar> = LINES
        .iter()
        .filter_map(|(key, label, tone)| ledger.get(*key).map(|value| bar(label, *value, *tone)))
        .filter(|part| part.value > 0.0)
        .collect();
    let mut others: Vec<Bar> = ledger
        .iter()
        .filter(|(key, value)| **value > 0.0 && *key != "wall" && LINES.iter().all(|line| line.0 != *key))
        .map(|(key, value)| bar(&words(key), *value, Tone::Dim))
        .collect();
    others.sort_by(|a, b| b.value.total_cmp(&a.value).then_with(|| a.label.cmp(&b.label)));
    parts.extend(others);
    parts
}

fn bar(label: &str, value: f64, tone: Tone) -> Bar {
    Bar { label: label.to_owned(), value, note: String::new(), tone }
}

/// `blocked_socket_read` as `blocked: socket read`.
fn words(key: &str) -> String {
    match key.strip_prefix("blocked_") {
        Some(kind) => format!("blocked: {}", kind.replace('_', " ")),
        None => key.replace('_', " "),
    }
}

/// Of the thread time: less is no part of the answer.
const SLIVER: f64 = 0.005;

/// Lines of the ledger that are next to nothing become one; the bars still add up to the whole.
fn join_slivers(block: &mut Block) {
    let Block::Bars { total, parts, .. } = block else { return };
    let sliver = |bar: &Bar| bar.value < *total * SLIVER;
    let slivers: Vec<Bar> = parts.iter().filter(|bar| sliver(bar)).cloned().collect();
    if slivers.len() > 1 {
        parts.retain(|bar| !sliver(bar));
        let value = slivers.iter().map(|bar| bar.value).sum();
        let label = format!("{} other lines", slivers.len());
        parts.push(Bar { label, value, note: String::new(), tone: Tone::Dim });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(lines: &[(&str, f64)]) -> BTreeMap<String, f64> {
        lines.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
    }

    #[test]
    fn cpu_first_then_waits_by_size() {
        let parts = parts(&ledger(&[
            ("blocked_futex", 3.0),
            ("blocked_socket_read", 5.0),
            ("user", 1.0),
            ("wall", 9.0),
            ("throttled", 0.0),
        ]));
        let labels: Vec<_> = parts.iter().map(|part| part.label.as_str()).collect();
        assert_eq!(labels, ["on-CPU, user", "blocked: socket read", "blocked: futex"]);
    }

    #[test]
    fn what_is_missing_is_a_line() {
        let mut verdict: diagnose::verdict::Verdict =
            serde_json::from_str(include_str!("../../tests/data/busy-poll.json")).unwrap();
        verdict.ledger.threads = ledger(&[("user", 6.0), ("wall", 10.0)]);
        let recording = recording::Recording::default();
        let section = view(&Material::new(&verdict, &diagnose::Case::new(&recording))).unwrap();
        let Block::Bars { total, parts, .. } = &section.blocks[0] else { panic!("not bars") };
        assert_eq!((*total, parts[1].label.as_str(), parts[1].value), (10.0, "unaccounted", 4.0));
    }

    #[test]
    fn slivers_of_the_ledger_are_one_line() {
        let bar = |(label, value): (&str, f64)| Bar {
            label: label.to_owned(),
            value,
            note: String::new(),
            tone: Tone::Plain,
        };
        let parts = [("user", 9.98), ("preempted", 0.01), ("interrupted", 0.01)].map(bar).to_vec();
        let bars = Block::Bars { title: String::new(), unit: "s".to_owned(), total: 10.0, parts };
        let mut bars = bars;
        join_slivers(&mut bars);
        let Block::Bars { parts, .. } = &bars else { panic!("no bars") };
        let lines: Vec<_> = parts.iter().map(|bar| (bar.label.as_str(), (bar.value * 100.0).round())).collect();
        assert_eq!(lines, [("user", 998.0), ("2 other lines", 2.0)]);
    }
}
