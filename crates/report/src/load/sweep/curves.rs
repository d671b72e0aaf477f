// SPDX-License-Identifier: Apache-2.0
//! What grew and what did not as more was asked: each load is a point, several at one rate show what chance was.

use load::{Percentiles, Step};

use crate::load::{SweepAnswer, words};
use crate::numbers;
use crate::section::plot::{Axis, Look, Plot, Trace};
use crate::section::{Block, Section, Terminal};

use super::by_rate;

/// The share beyond which a promise is not kept.
const BROKEN: f64 = 0.01;
const ASKED: &str = "requests asked a second";

/// The pictures.
pub fn part(answer: &SweepAnswer) -> Option<Section> {
    let steps = by_rate(answer);
    let pictures = [answers(answer, &steps), times(answer, &steps), cpus(answer, &steps), slow(answer, &steps)];
    let blocks = pictures.into_iter().flatten().map(Block::Plot).collect();
    (steps.len() > 1).then(|| Section::new("curves", "By load", blocks, Terminal::Nothing))
}

fn rates<'a>(steps: &'a [&Step]) -> impl Iterator<Item = f64> + Clone + 'a {
    steps.iter().map(|step| step.rate)
}

fn trace(label: &str, look: Look, points: Vec<[f64; 2]>) -> Trace {
    Trace { label: label.into(), points, look }
}

fn mark(answer: &SweepAnswer) -> Vec<(f64, String)> {
    let knee = answer.sweep.knee.iter();
    knee.map(|knee| (knee.sustained, format!("limit: {}/s", words::requests(knee.answered)))).collect()
}

/// A line at one height over all rates.
fn level(label: &str, steps: &[&Step], height: f64) -> Trace {
    let ends = steps.first().into_iter().chain(steps.last());
    trace(label, Look::Guide, ends.map(|step| [step.rate, height]).collect())
}

fn answers(answer: &SweepAnswer, steps: &[&Step]) -> Option<Plot> {
    let x = Axis::of(ASKED, "", rates(steps));
    let points = steps.iter().map(|step| [step.rate, step.verdict.rate]).collect();
    let asked = rates(steps).map(|rate| [rate, rate]).collect();
    Some(Plot {
        title: "Requests answered".into(),
        y: Axis { title: "answered a second".into(), unit: "", logarithmic: x.logarithmic },
        x,
        traces: vec![trace("answered", Look::Joined, points), trace("as many as were asked", Look::Guide, asked)],
        marks: mark(answer),
    })
}

fn times(answer: &SweepAnswer, steps: &[&Step]) -> Option<Plot> {
    let of = |label: &str, of: fn(&Percentiles) -> Option<f64>| {
        let points = steps.iter().filter_map(|step| Some([step.rate, of(&step.verdict.corrected)?]));
        trace(label, Look::Joined, points.collect())
    };
    let mut traces = vec![of("p50", |it| it.p50), of("p99", |it| it.p99)];
    traces.retain(|trace| !trace.points.is_empty());
    if let Some(slo) = steps.iter().find_map(|step| step.verdict.slo).filter(|_| !traces.is_empty()) {
        traces.push(level(&format!("promised: {}", numbers::seconds(slo.seconds)), steps, slo.seconds));
    }
    (!traces.is_empty()).then(|| Plot {
        title: "Response times, from when requests were due".into(),
        x: Axis::of(ASKED, "", rates(steps)),
        y: Axis { title: "response time".into(), unit: "s", logarithmic: true },
        traces,
        marks: mark(answer),
    })
}

/// Over a straight axis: only there a straight line is one, and begins at what the service takes unasked.
fn cpus(answer: &SweepAnswer, steps: &[&Step]) -> Option<Plot> {
    let of = |is_sustained: bool| {
        let steps = steps.iter().filter(|step| step.sustained == is_sustained);
        steps.filter_map(|step| Some([step.verdict.rate, step.service.as_ref()?.cpus])).collect::<Vec<_>>()
    };
    let mut traces = vec![
        trace("a load that was sustained", Look::Dots, of(true)),
        trace("one that was not", Look::Dots, of(false)),
    ];
    traces.retain(|trace| !trace.points.is_empty());
    let most = traces.iter().flat_map(|trace| &trace.points).map(|point| point[0]).fold(0.0, f64::max);
    if let Some(line) = answer.sweep.cpu {
        let label = format!(
            "{:.2} CPUs unasked, and {} for each request",
            line.floor,
            numbers::seconds(line.seconds_per_request.max(0.0))
        );
        let ends = [0.0, most].map(|rate| [rate, (line.floor + line.seconds_per_request * rate).max(0.0)]);
        traces.push(trace(&label, Look::Guide, ends.into()));
    }
    (!traces.is_empty()).then(|| Plot {
        title: "CPUs that the service used".into(),
        x: Axis { title: "requests answered a second".into(), unit: "", logarithmic: false },
        y: Axis { title: "CPUs".into(), unit: "", logarithmic: false },
        traces,
        marks: Vec::new(),
    })
}

fn slow(answer: &SweepAnswer, steps: &[&Step]) -> Option<Plot> {
    let points: Vec<[f64; 2]> = steps.iter().filter_map(|step| Some([step.rate, step.verdict.slo?.broken])).collect();
    let promised = numbers::seconds(steps.iter().find_map(|step| step.verdict.slo)?.seconds);
    Some(Plot {
        title: format!("Requests that took longer than {promised} or have no answer"),
        x: Axis::of(ASKED, "", rates(steps)),
        y: Axis { title: "share of requests".into(), unit: "share", logarithmic: false },
        traces: vec![
            trace("share", Look::Joined, points),
            level("more than that, and the promise is not kept", steps, BROKEN),
        ],
        marks: mark(answer),
    })
}
