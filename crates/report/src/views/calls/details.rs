// SPDX-License-Identifier: Apache-2.0
//! Arguments, results, descriptors and times of counted calls, for who wants to see the distribution.

use diagnose::facts::calls::{Counted, Key};

use super::super::thread_names::ThreadNames;
use super::totals::{asks, shares, timeouts};
use crate::numbers;
use crate::section::{Block, Column};

/// Rows of a table.
const MOST: usize = 40;

/// Arguments and results of each call.
pub fn arguments(calls: &[(&Key, &Counted)], names: &ThreadNames) -> Option<Block> {
    let row = |(key, call): &(&Key, &Counted)| {
        let sizes = shares(call.sizes.iter().map(|(from, count)| (size(*from), *count)));
        let arguments = if sizes.is_empty() { timeouts(&call.timeouts) } else { sizes };
        vec![names.full(key.0, key.1), call.name.clone(), arguments, shares(call.named_results().into_iter())]
    };
    let columns = ["thread", "call", "timeout or size", "result"].map(Column::left).to_vec();
    let title = "Counted: arguments and results".to_owned();
    let rows: Vec<_> = calls.iter().take(MOST).map(row).collect();
    (!rows.is_empty()).then_some(Block::Table { title, columns, rows })
}

/// Calls by descriptor.
pub fn descriptors(calls: &[(&Key, &Counted)], names: &ThreadNames) -> Option<Block> {
    let mut rows = Vec::new();
    for (key, call) in calls {
        for (fd, on) in &call.descriptors {
            let share = numbers::share(on.empty as f64 / on.calls.max(1) as f64);
            let empty = if asks(call) { share } else { String::new() };
            let cells =
                [names.full(key.0, key.1), call.name.clone(), fd.to_string(), numbers::number(on.calls as f64), empty];
            rows.push((on.calls, cells.to_vec()));
        }
    }
    rows.sort_by_key(|(calls, _)| std::cmp::Reverse(*calls));
    let rows: Vec<_> = rows.into_iter().take(MOST).map(|(_, cells)| cells).collect();
    let mut columns = ["thread", "call"].map(Column::left).to_vec();
    columns.extend(["descriptor", "calls in windows", "empty"].map(Column::right));
    let title = "Counted: by descriptor".to_owned();
    (!rows.is_empty()).then_some(Block::Table { title, columns, rows })
}

/// What one call was asked, what it answered, and how long it took.
pub fn histograms(of: &str, call: &Counted) -> Vec<Block> {
    let timeouts = call.timeouts.iter().map(|(class, count)| (class.label().to_owned(), *count));
    let sizes = call.sizes.iter().map(|(from, count)| (size(*from), *count));
    let times = call.latency.iter().map(|(from, count)| (time(*from), *count));
    [
        histogram(of, "timeout", timeouts.collect()),
        histogram(of, "size asked for", sizes.collect()),
        histogram(of, "result", call.named_results()),
        histogram(of, "time taken", times.collect()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A single bucket is in the tables already.
fn histogram(of: &str, what: &str, buckets: Vec<(String, u64)>) -> Option<Block> {
    let buckets: Vec<(String, f64)> = buckets.into_iter().map(|(label, count)| (label, count as f64)).collect();
    let (title, unit) = (format!("{of}: {what}"), "calls".to_owned());
    (buckets.len() > 1).then_some(Block::Histogram { title, unit, buckets })
}

/// A bucket of sizes by its lower bound.
fn size(from: i64) -> String {
    match from {
        0 | 1 => format!("{from} B"),
        from => format!("{} to {}", bytes(from), bytes(from.saturating_mul(2))),
    }
}

/// Powers of two are whole in some unit.
fn bytes(count: i64) -> String {
    let (mut value, mut units) = (count, ["B", "KiB", "MiB", "GiB", "TiB"].iter());
    let mut unit = units.next();
    while value >= 1024 && value % 1024 == 0 {
        value /= 1024;
        unit = units.next().or(unit);
    }
    format!("{value} {}", unit.unwrap_or(&"B"))
}

/// A bucket of times by its lower bound.
fn time(from_ns: u64) -> String {
    let seconds = |ns: u64| numbers::seconds(ns as f64 / 1e9);
    format!("{} to {}", seconds(from_ns), seconds(from_ns.saturating_mul(2).max(1)))
}
