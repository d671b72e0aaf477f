// SPDX-License-Identifier: Apache-2.0
//! What the generator itself took, and how late it was.

use crate::numbers;
use crate::section::{Block, Section, Tone};

use super::{Answer, section};

/// The section.
pub fn part(answer: &Answer) -> Option<Section> {
    let verdict = &answer.verdict;
    let client = &verdict.client;
    let lag = [("a hundred", client.lag.p99), ("ten", client.lag.p90)];
    let late = lag.into_iter().find_map(|(many, lag)| {
        let lag = lag.filter(|lag| *lag > 0.0)?;
        Some(format!("one request in {many} was noticed {} late or more; ", numbers::seconds(lag)))
    });
    let late = late.unwrap_or_default();
    let text = format!(
        "{late}{:.2} CPUs, {} for each request, {} of the time waiting for one{}.",
        client.cpus,
        numbers::seconds(client.cpu_per_request),
        numbers::share(client.waited_for_cpu),
        if verdict.connections > 0 { format!("; {} connections", verdict.connections) } else { String::new() }
    );
    Some(section("client", "The generator".into(), vec![Block::Text { text, tone: Tone::Plain }]))
}
