// SPDX-License-Identifier: Apache-2.0
//! Requests without an answer, by why.

use load::{Failure, words};

use crate::numbers;
use crate::section::{Block, Column, Section};

use super::{Answer, section};

/// The section; none where nothing failed.
pub fn part(answer: &Answer) -> Option<Section> {
    let verdict = &answer.verdict;
    if verdict.errors.is_empty() {
        return None;
    }
    let mut rows: Vec<Vec<String>> = verdict
        .errors
        .iter()
        .map(|(failure, count)| vec![words(*failure).into(), numbers::number(*count as f64)])
        .collect();
    // Told by status instead.
    let refused: Vec<(&u16, &u64)> = verdict.statuses.iter().filter(|entry| *entry.0 >= 400).collect();
    if !refused.is_empty() {
        rows.retain(|row| row[0] != words(Failure::Status));
    }
    rows.extend(
        refused.into_iter().map(|(status, count)| vec![format!("status {status}"), numbers::number(*count as f64)]),
    );
    let columns = vec![Column::left("requests that failed"), Column::right("count")];
    Some(section("failures", "Failures".into(), vec![Block::Table { title: String::new(), columns, rows }]))
}
