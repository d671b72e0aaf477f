// SPDX-License-Identifier: Apache-2.0
//! When it began: the verdict of each part of the recording.

use diagnose::verdict::Moment;

use crate::numbers;
use crate::section::{Block, Column, Section, Terminal};

use super::Material;

/// Rows in the short form: a page of a terminal.
const SHORT: usize = 24;

/// One row a part, with what requests took in it.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let moments = &material.verdict.timeline;
    if moments.is_empty() {
        return None;
    }
    let joined = joined(moments);
    let shown = joined.len().min(SHORT);
    let mut short = vec![table(&joined[..shown])];
    if moments.len() > shown {
        let text = format!(
            "Only where the verdict changes, each row with the numbers of its first part; {} more rows with --full.",
            moments.len() - shown
        );
        short.push(Block::Text { text, tone: crate::section::Tone::Dim });
    }
    let section = Section::new("timeline", "When", vec![table(&moments.iter().collect::<Vec<_>>())], Terminal::All);
    Some(section.kept_as(short))
}

/// Without the parts that say the same as the one before them: what is left is when it changed.
fn joined(moments: &[Moment]) -> Vec<&Moment> {
    let mut kept: Vec<&Moment> = Vec::new();
    for moment in moments {
        if kept.last().is_none_or(|last| last.verdict != moment.verdict) {
            kept.push(moment);
        }
    }
    if moments.len() <= SHORT { moments.iter().collect() } else { kept }
}

fn table(moments: &[&Moment]) -> Block {
    let time = |seconds: Option<f64>| seconds.map_or(String::new(), numbers::seconds);
    let row = |moment: &&Moment| {
        vec![
            format!("{:.0}–{:.0} s", moment.from, moment.to),
            moment.verdict.clone(),
            moment.share.map_or(String::new(), numbers::share),
            moment.rate.map_or(String::new(), |rate| numbers::number(rate.round())),
            time(moment.p50),
            time(moment.p99),
            if moment.cores > 0.0 && moment.cores < 0.01 { "<0.01".into() } else { format!("{:.2}", moment.cores) },
        ]
    };
    let [when, verdict] = ["when", "verdict"].map(Column::left);
    let [share, rate, p50, p99, cores] = ["share", "requests/s", "p50", "p99", "cores"].map(Column::right);
    Block::Table {
        title: String::new(),
        columns: vec![when, verdict, share, rate, p50, p99, cores],
        rows: moments.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(from: u32, verdict: &str) -> Moment {
        Moment { from: f64::from(from), to: f64::from(from + 1), verdict: verdict.into(), ..Moment::default() }
    }

    #[test]
    fn a_long_one_is_told_by_its_changes() {
        let long: Vec<Moment> = (0..60).map(|at| moment(at, if at < 40 { "healthy" } else { "disk-wait" })).collect();
        let starts: Vec<f64> = joined(&long).iter().map(|moment| moment.from).collect();
        assert_eq!(starts, [0.0, 40.0]);
        assert_eq!(joined(&long[..24]).len(), 24);
    }
}
