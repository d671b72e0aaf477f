// SPDX-License-Identifier: Apache-2.0
//! Response times: percentiles, and on a page the whole distribution.

use load::{Percentiles, Verdict, Word};

use crate::section::pictures::{Curve, Distribution};
use crate::section::{Block, Column, Section, Terminal};

use super::{Answer, dim, percentile};

/// Answers beyond a percentile without which it is chance.
const BEYOND: f64 = 10.0;

/// The section.
pub fn part(answer: &Answer) -> Option<Section> {
    let verdict = &answer.verdict;
    let mut blocks = vec![table(verdict)];
    if verdict.verdict == Word::ClientLimited {
        blocks.push(dim("Slow answers are not shown: what the generator itself adds is largest there."));
    }
    let told = blocks.len();
    let points: Vec<[f64; 2]> = verdict.curve.iter().map(|(length, share)| [*length, *share]).collect();
    if points.len() > 1 {
        let curve = Curve { label: "answers".into(), points, known: Some(known(verdict.answered as f64)) };
        let title = "Share of the answers that take at most so long, from when they were due".into();
        blocks.push(Block::Distribution(Distribution { title, curves: vec![curve], graded: false }));
    }
    Some(Section::new("times", "Response times", blocks, Terminal::First(told)))
}

/// The share of so many answers up to which a length is more than chance.
pub(super) fn known(answers: f64) -> f64 {
    1.0 - BEYOND / answers.max(1.0)
}

fn table(verdict: &Verdict) -> Block {
    let row = |name: &str, of: &Percentiles| {
        let cells = [of.p50, of.p90, of.p99, of.p999, of.longest].map(percentile);
        [vec![name.to_string()], cells.to_vec()].concat()
    };
    let mut rows = vec![row("from when it was sent", &verdict.seconds)];
    if verdict.planned.is_some() || verdict.reasons.iter().any(|reason| reason.code == "coordinated-omission") {
        rows.insert(0, row("from when it was due", &verdict.corrected));
    }
    if verdict.refusals.longest.is_some() {
        rows.push(row("answers of 400 and more", &verdict.refusals));
    }
    let heads = ["p50", "p90", "p99", "p99.9", "longest"].map(Column::right);
    let first = if verdict.sees_answers { "until the answer was whole" } else { "until the answer began" };
    let columns = [Column::left(first)].into_iter().chain(heads).collect();
    Block::Table { title: String::new(), columns, rows }
}
