// SPDX-License-Identifier: Apache-2.0
//! How much of the time the evidence covers, and what it cost to collect.

use diagnose::answer::{Cost, Coverage};

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal, Tone};

use super::Material;

/// Coverage and cost.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let verdict = material.verdict;
    let blocks = vec![short(&verdict.coverage, &verdict.cost), coverage(&verdict.coverage), cost(&verdict.cost)];
    Some(Section::new("coverage", "Coverage and cost", blocks, Terminal::First(1)).kept())
}

/// Both in two sentences.
fn short(coverage: &Coverage, cost: &Cost) -> Block {
    let lost = match coverage.events_lost {
        0 => "no event was lost".to_owned(),
        lost => format!("{} events were lost", numbers::number(lossy(lost))),
    };
    let text = format!(
        "Accounted for: {} of thread time, {} of CPU time with a named stack, {} of blocked time with a kernel stack; \
         {lost}. The capture cost {} of CPU time, {} of all CPUs, and at most {} of memory.{}",
        numbers::share(coverage.thread_time),
        numbers::share(coverage.cpu_time),
        numbers::share(coverage.blocked_time),
        numbers::seconds(cost.cpu_seconds),
        numbers::share(cost.share_of_machine),
        numbers::bytes(lossy(cost.peak_rss_bytes.saturating_add(cost.kernel_map_bytes))),
        windows(cost),
    );
    Block::Text { text, tone: Tone::Plain }
}

/// What everybody paid while system calls were counted.
fn windows(cost: &Cost) -> String {
    if cost.call_window_price_ns <= 0.0 {
        return String::new();
    }
    format!(
        " System calls were counted for {} of the time; meanwhile each call of any other process took {} longer.",
        numbers::share(cost.call_window_share),
        numbers::seconds(cost.call_window_price_ns / 1e9),
    )
}

fn table(head: &str, rows: Vec<(&str, String)>) -> Block {
    let columns = vec![Column::left(head), Column::right("")];
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    Block::Table { title: String::new(), columns, rows }
}

fn coverage(coverage: &Coverage) -> Block {
    table(
        "covered by evidence",
        vec![
            ("thread time on a ledger line", numbers::share(coverage.thread_time)),
            ("on-CPU time with a named stack", numbers::share(coverage.cpu_time)),
            ("blocked time with a kernel stack", numbers::share(coverage.blocked_time)),
            ("events lost", numbers::number(lossy(coverage.events_lost))),
        ],
    )
}

fn cost(cost: &Cost) -> Block {
    table(
        "cost of the capture",
        vec![
            ("CPU time of wakewalk and its kernel programs", numbers::seconds(cost.cpu_seconds)),
            ("as a share of all CPUs", numbers::share(cost.share_of_machine)),
            ("peak memory", numbers::bytes(lossy(cost.peak_rss_bytes))),
            ("kernel memory of maps and rings", numbers::bytes(lossy(cost.kernel_map_bytes))),
            ("share of the window with every system call counted", numbers::share(cost.call_window_share)),
            ("longer for each system call of others meanwhile", numbers::seconds(cost.call_window_price_ns / 1e9)),
        ],
    )
}

/// For printing only: counts beyond 2^53 lose their last digits.
#[allow(clippy::cast_precision_loss)]
fn lossy(count: u64) -> f64 {
    count as f64
}
