// SPDX-License-Identifier: Apache-2.0
//! Which calls there were, by thread: counted ones by number, sampled ones by CPU time.

use std::collections::BTreeMap;

use diagnose::Case;
use diagnose::facts::calls::{Calls, Counted, Key, Sampled};
use diagnose::facts::profile::Profile;
use diagnose::syscall::{Family, Timeout};

use super::super::thread_names::ThreadNames;
use crate::numbers;
use crate::section::{Block, Column};

/// Rows of the tables that a terminal may show.
const FIRST: usize = 8;

/// Below this share of kernel samples a call is not worth a row.
const HARDLY: f64 = 0.01;

/// Counted calls, most first.
pub fn counted(calls: &[(&Key, &Counted)], names: &ThreadNames) -> Block {
    let row = |(key, call): &(&Key, &Counted)| {
        vec![
            names.full(key.0, key.1),
            call.name.clone(),
            numbers::number(call.per_second.round()),
            if asks(call) { numbers::share(call.empty_share()) } else { String::new() },
            if asks(call) && call.found > 0 { tries(call) } else { String::new() },
            most(&call.timeouts),
        ]
    };
    let columns = vec![
        Column::left("thread"),
        Column::left("call"),
        Column::right("calls/s"),
        Column::right("empty"),
        Column::right("per find"),
        Column::left("timeout"),
    ];
    Block::Table { title: String::new(), columns, rows: calls.iter().take(FIRST).map(row).collect() }
}

/// Whether a call of this family can come back without anything.
pub fn asks(call: &Counted) -> bool {
    matches!(call.family, Family::Poll | Family::Receive | Family::Accept | Family::Yield | Family::Sleep)
}

/// Empty calls for each one that found something.
fn tries(call: &Counted) -> String {
    let tries = call.empty as f64 / call.found as f64;
    numbers::number(if tries < 100.0 { (tries * 10.0).round() / 10.0 } else { tries.round() })
}

/// The timeout that most calls had, with its share.
fn most(classes: &BTreeMap<Timeout, u64>) -> String {
    let known = || classes.iter().filter(|(class, _)| **class != Timeout::Unknown);
    let total: f64 = known().map(|(_, count)| *count as f64).sum();
    let most = known().max_by_key(|(_, count)| **count).filter(|(_, count)| **count > 0);
    most.map_or(String::new(), |(class, count)| {
        format!("{} ({})", class.label(), numbers::share(*count as f64 / total))
    })
}

/// Timeout classes with their shares, `0: 99.9 %, endless: 0.1 %`; nothing where none is known.
pub fn timeouts(classes: &BTreeMap<Timeout, u64>) -> String {
    let known = classes.iter().filter(|(class, _)| **class != Timeout::Unknown);
    shares(known.map(|(class, count)| (class.label().to_owned(), *count)))
}

/// Shares of the larger parts, `a: 90.0 %, b: 10.0 %`.
pub fn shares(parts: impl Iterator<Item = (String, u64)>) -> String {
    let mut parts: Vec<(String, u64)> = parts.filter(|(_, count)| *count > 0).collect();
    let total: f64 = parts.iter().map(|(_, count)| *count as f64).sum();
    parts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words = parts.iter().take(4).map(|(name, count)| format!("{name}: {}", numbers::share(*count as f64 / total)));
    let mut text = words.collect::<Vec<_>>().join(", ");
    if parts.len() > 4 {
        text.push_str(", …");
    }
    text
}

/// Sampled calls, most CPU time first.
pub fn sampled(case: &Case<'_>, calls: &Calls, names: &ThreadNames) -> Option<Block> {
    let kernel = case.fact::<Profile>().ok()?.total.kernel as f64;
    let mut rows: Vec<(&Key, &Sampled)> =
        calls.sampled.iter().filter(|(_, s)| s.samples as f64 >= kernel * HARDLY && s.samples > 0).collect();
    rows.sort_by(|a, b| b.1.samples.cmp(&a.1.samples).then(a.0.cmp(b.0)));
    let row = |(key, call): &(&Key, &Sampled)| {
        let empty = call.empty_results as f64 / call.results as f64;
        vec![
            names.full(key.0, key.1),
            call.name.clone(),
            numbers::share(call.samples as f64 / kernel),
            timeouts(&call.timeouts),
            if call.results > 0 { numbers::share(empty) } else { String::new() },
        ]
    };
    let columns = vec![
        Column::left("thread"),
        Column::left("call"),
        Column::right("of kernel samples"),
        Column::left("timeouts"),
        Column::right("empty results"),
    ];
    let title = "Sampled: which calls kernel CPU time went into".to_owned();
    let rows: Vec<_> = rows.iter().take(FIRST).map(row).collect();
    (!rows.is_empty()).then_some(Block::Table { title, columns, rows })
}
