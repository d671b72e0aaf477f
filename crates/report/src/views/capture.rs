// SPDX-License-Identifier: Apache-2.0
//! What was watched, where and when. The terminal has it in one line under the verdict.

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal};

use super::Material;

/// Facts about the capture itself.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let verdict = material.verdict;
    let (host, target, window) = (&verdict.host, &verdict.target, &verdict.window);
    let pids: Vec<_> = target.pids.iter().map(u32::to_string).collect();
    let rows = [
        ("target", format!("{} ({})", target.comm, target.named)),
        ("process ids at the start", pids.join(", ")),
        ("listening on", target.listen.join(", ")),
        ("host", host.name.clone()),
        ("kernel", host.kernel.clone()),
        ("CPUs", host.cpus.to_string()),
        ("virtualization", host.virtualization.clone()),
        ("start", window.start.clone()),
        ("length", numbers::seconds(window.seconds)),
        ("ended by", window.ended.clone()),
        ("diagnosed by", verdict.tool.clone()),
    ];
    let rows =
        rows.into_iter().filter(|row| !row.1.is_empty()).map(|(name, value)| vec![name.to_owned(), value]).collect();
    let columns = vec![Column::left(""), Column::left("")];
    let blocks = vec![Block::Table { title: String::new(), columns, rows }];
    Some(Section::new("capture", "The capture", blocks, Terminal::Nothing))
}
