// SPDX-License-Identifier: Apache-2.0
//! What the generator itself took at each load, and how late it was: where that is much, it is its own limit.

use load::{Step, rounded};

use crate::load::{SweepAnswer, dim, percentile, section};
use crate::numbers;
use crate::section::{Block, Column, Section};

use super::by_rate;

/// The table.
pub fn part(answer: &SweepAnswer) -> Option<Section> {
    let row = |step: &Step| {
        let client = &step.verdict.client;
        let [p50, p90, p99] = [client.lag.p50, client.lag.p90, client.lag.p99].map(percentile);
        let cost = [format!("{:.2}", client.cpus), numbers::seconds(client.cpu_per_request)];
        let waited = numbers::share(client.waited_for_cpu);
        [vec![rounded(step.rate), p50, p90, p99], cost.into(), vec![waited, step.verdict.connections.to_string()]]
            .concat()
    };
    let heads = ["asked/s", "late p50", "p90", "p99", "CPUs", "a request", "waited", "connections"];
    let columns = heads.map(Column::right).into();
    let rows = by_rate(answer).into_iter().map(row).collect();
    let legend = "Late: how long after a request was due the generator noticed, its own fault alone. Its CPUs, CPU time for each \
                  request, the share of the time in which it waited for a CPU, connections that it opened.";
    let blocks = vec![Block::Table { title: String::new(), columns, rows }, dim(legend)];
    Some(section("generator", "The generator".into(), blocks))
}
