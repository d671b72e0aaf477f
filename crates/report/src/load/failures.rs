// SPDX-License-Identifier: Apache-2.0
//! Requests without an answer, by why.

use load::{Failure, words};

use crate::section::{Block, Column, Section};

use super::{Answer, section};

/// The section; none where nothing failed.
pub fn part(answer: &Answer) -> Option<Section> {
    let verdict = &answer.verdict;
    if verdict.errors.is_empty() {
        return None;
    }
    let mut rows: Vec<Vec<String>> =
        verdict.errors.iter().map(|(failure, count)| vec![words(*failure).into(), count.to_string()]).collect();
    // Told by status instead.
    if let Some(word) = verdict.errors.contains_key(&Failure::Status).then(|| words(Failure::Status)) {
        rows.retain(|row| row[0] != word);
    }
    let refused = verdict.statuses.iter().filter(|entry| *entry.0 >= 400);
    rows.extend(refused.map(|(status, count)| vec![format!("status {status}"), count.to_string()]));
    let columns = vec![Column::left("requests that failed"), Column::right("count")];
    Some(section("failures", "Failures".into(), vec![Block::Table { title: String::new(), columns, rows }]))
}
