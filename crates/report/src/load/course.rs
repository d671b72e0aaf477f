// SPDX-License-Identifier: Apache-2.0
//! How it went second by second: what was asked and answered, and how long answers took.

use load::{Moment, rounded};

use crate::numbers;
use crate::section::plot::{Axis, Look, Plot, Trace};
use crate::section::{Block, Column, Line, Section, Terminal};

use super::{Answer, percentile, section};

/// Of a second: a shorter rest at the end of a load has no rate.
const SHORTEST: f64 = 0.5;

/// On a page: pictures, and the numbers folded.
pub fn part(answer: &Answer) -> Option<Section> {
    let whole: Vec<&Moment> = answer.verdict.by_second.iter().filter(|it| it.seconds >= SHORTEST).collect();
    if whole.len() < 2 {
        return None;
    }
    let blocks = vec![rates(&whole), lengths(answer, &whole), table(&answer.verdict.by_second, "In numbers").folded()];
    Some(Section::new("course", "Second by second", blocks, Terminal::Nothing))
}

/// On a terminal: the numbers.
pub fn told(answer: &Answer) -> Section {
    section("course", "Second by second".into(), vec![table(&answer.verdict.by_second, "")])
}

fn rates(moments: &[&Moment]) -> Block {
    let line = |label: &str, of: fn(&Moment) -> u64| {
        let values = moments.iter().map(|it| of(it) as f64 / it.seconds).collect();
        Line { label: label.into(), values }
    };
    Block::Series {
        title: "Requests, by when they were due".into(),
        unit: "a second".into(),
        x: moments.iter().map(|it| it.from as f64).collect(),
        lines: vec![line("asked", |it| it.due), line("answered", |it| it.answered), line("failed", |it| it.failed)],
        stacked: false,
    }
}

/// With a line where another phase begins.
fn lengths(answer: &Answer, moments: &[&Moment]) -> Block {
    let trace = |label: &str, of: fn(&Moment) -> Option<f64>| Trace {
        label: label.into(),
        points: moments.iter().map(|it| [it.from as f64, of(it).unwrap_or(f64::NAN)]).collect(),
        look: Look::Line,
    };
    let mut traces = vec![trace("p50", |it| it.p50), trace("p99", |it| it.p99)];
    traces.retain(|trace| trace.points.iter().any(|point| point[1].is_finite()));
    if let (Some(slo), Some(last)) = (answer.verdict.slo, moments.last()) {
        let label = format!("promised: {}", numbers::seconds(slo.seconds));
        let points = vec![[0.0, slo.seconds], [last.from as f64, slo.seconds]];
        traces.push(Trace { label, points, look: Look::Guide });
    }
    let phases = answer.verdict.phases.iter().skip(1);
    Block::Plot(Plot {
        title: "How long answers took, by when they were due".into(),
        x: Axis { title: "seconds from the start".into(), unit: "", logarithmic: false },
        y: Axis { title: "response time".into(), unit: "s", logarithmic: true },
        traces,
        marks: phases.map(|phase| (phase.from as f64, "another phase".into())).collect(),
    })
}

fn table(moments: &[Moment], title: &str) -> Block {
    let row = |it: &Moment| {
        let [p50, p99] = [it.p50, it.p99].map(percentile);
        let rates = [it.due, it.answered].map(|count| rounded(count as f64 / it.seconds.max(SHORTEST)));
        [vec![it.from.to_string()], rates.into(), vec![it.failed.to_string(), p50, p99]].concat()
    };
    let columns = ["second", "asked/s", "answered/s", "failed", "p50", "p99"].map(Column::right).into();
    Block::Table { title: title.into(), columns, rows: moments.iter().map(row).collect() }
}
