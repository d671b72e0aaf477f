// SPDX-License-Identifier: Apache-2.0
//! Where the time of exchanges goes, by listener and upstream: stages side by side, and on a page how each is distributed.

use diagnose::facts::requests::{Endpoint, Lengths, Requests};
use diagnose::facts::stages::{OfEndpoint, Stage, Stages};

use crate::section::pictures::{Curve, Distribution, Hue, Piece, Stacked, StackedBar};
use crate::section::{Block, Section, Terminal, Tone};

use super::Material;

/// Endpoints in the short form.
const SHORT: usize = 3;

/// Endpoints at all.
const MOST: usize = 8;

/// The stages.
pub fn view(material: &Material<'_>) -> Option<Section> {
    let stages = material.case.fact::<Stages>().ok()?;
    let requests = material.case.fact::<Requests>().ok()?;
    let told: Vec<&OfEndpoint> = stages.endpoints.iter().take(MOST).collect();
    if told.is_empty() {
        return None;
    }
    let left_out = stages.endpoints.len() - told.len();
    let mut blocks = vec![bars(&told)];
    blocks.extend(note(left_out));
    let terminal = Terminal::First(blocks.len());
    let curves = told.iter().filter_map(|of| requests.of(of.accepted, &of.name)).filter_map(distribution);
    blocks.extend(curves);
    let short = vec![bars(&told[..told.len().min(SHORT)])];
    Some(Section::new("stages", "Stages of an exchange", blocks, terminal).kept_as(short))
}

/// In the order of time.
fn words(stage: Stage) -> (&'static str, Hue) {
    match stage {
        Stage::Accept => ("accept", Hue::Door),
        Stage::Held => ("held", Hue::Held),
        Stage::Wire => ("wire", Hue::Wire),
        Stage::Peer => ("the peer", Hue::Peer),
        Stage::PeerOrWire => ("the peer and the wire", Hue::Peer),
        Stage::ReadWait => ("read wait", Hue::Queue),
        Stage::Rest => ("rest of the question", Hue::Peer),
        Stage::Service => ("service", Hue::Work),
    }
}

fn bars(endpoints: &[&OfEndpoint]) -> Block {
    let bar = |of: &&OfEndpoint| {
        let part = |(stage, seconds): &(Stage, f64)| {
            let (label, hue) = words(*stage);
            Piece { label: label.to_owned(), value: *seconds, hue }
        };
        let name = of.name.trim_start_matches("tcp ");
        let label = if of.accepted { name.to_owned() } else { format!("it asks {name}") };
        let parts = of.stages.iter().filter(|(_, seconds)| *seconds > 0.0).map(part);
        StackedBar { label, parts: parts.collect() }
    };
    let title = "On average".to_owned();
    Block::Stacked(Stacked { title, unit: "s".to_owned(), bars: endpoints.iter().map(bar).collect() })
}

fn note(left_out: usize) -> Option<Block> {
    let text = format!("{left_out} less busy ones are left out; JSON has all.");
    (left_out > 0).then_some(Block::Text { text, tone: Tone::Dim })
}

/// Of a curve: of points that are closer than this to the last one, as shares of all and of what is longer, only every last is
/// drawn.
const CLOSE: f64 = 0.004;
const CLOSE_TAIL: f64 = 0.1;

fn distribution(endpoint: &Endpoint) -> Option<Block> {
    let response = if endpoint.accepted { "response" } else { "until it answers" };
    let rest = endpoint.is_in_parts().then_some(("rest of the question", &endpoint.rest));
    let lengths = [(response, &endpoint.response), ("read wait", &endpoint.read_wait), ("service", &endpoint.service)];
    let lengths = lengths.into_iter().chain(rest);
    let curve = |(label, lengths): (&str, &Lengths)| {
        let points = thinned(&lengths.shares());
        (points.len() > 1).then(|| Curve { label: label.to_owned(), points, known: None })
    };
    let curves: Vec<Curve> = lengths.filter_map(curve).collect();
    let name = endpoint.name.trim_start_matches("tcp ");
    let title = match endpoint.accepted {
        true => format!("Answers at {name}: share of all that take at most so long"),
        false => format!("Answers of {name}: share of all that take at most so long"),
    };
    (!curves.is_empty()).then_some(Block::Distribution(Distribution { title, curves, graded: false }))
}

/// Fewer points, in s; the ends stay.
fn thinned(points: &[(f64, f64)]) -> Vec<[f64; 2]> {
    let mut kept: Vec<[f64; 2]> = Vec::new();
    for (at, (ns, share)) in points.iter().enumerate() {
        let last = kept.last().map_or(0.0, |point| point[1]);
        let far = share - last >= CLOSE || 1.0 - share <= (1.0 - last) * (1.0 - CLOSE_TAIL);
        if far || at == 0 || at + 1 == points.len() {
            kept.push([ns / 1e9, (share * 1e6).round() / 1e6]);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::tests::section;

    const TEXT: &str = "meta length_ns=4e9 target.listen=[\"tcp 0.0.0.0:80\"]
        exchange_window t_ns=4e9 length_ns=4e9
        connection t_ns=4e9 role=accepted port=80 looks=40 unsent=20 srtt_ns=9e7 min_rtt_ns=1e6
        exchange role=accepted port=80 stage=response count=100 sum_ns=3e9 length_ns=[20000000,30000000,90000000] counts=[50,45,5]
        exchange role=accepted port=80 stage=read_wait count=100 sum_ns=1e9 length_ns=[10000000,20000000] counts=[99,1]
        exchange role=accepted port=80 stage=service count=100 sum_ns=2e9 length_ns=[20000000,80000000] counts=[95,5]
        exchange role=made peer=10.0.0.9:1 stage=response count=50 sum_ns=2e9 length_ns=[40000000] counts=[50]";

    #[test]
    fn a_bar_for_each_and_a_curve_for_each_stage() {
        let section = section(view, TEXT).unwrap();
        let Block::Stacked(bars) = &section.blocks[0] else { panic!("no bars") };
        let labels: Vec<&str> = bars.bars.iter().map(|bar| bar.label.as_str()).collect();
        assert_eq!(labels, ["0.0.0.0:80", "it asks 10.0.0.9:1"]);
        let parts: Vec<(&str, f64)> = bars.bars[0].parts.iter().map(|p| (p.label.as_str(), p.value)).collect();
        assert_eq!(parts, [("read wait", 0.01), ("service", 0.02), ("held", 0.02)]);
        let Block::Distribution(curves) = &section.blocks[1] else { panic!("no curves") };
        assert_eq!(curves.curves[0].points, [[0.02, 0.5], [0.03, 0.95], [0.09, 1.0]]);
        assert_eq!(curves.curves.len(), 3, "one length only is no curve");
        assert_eq!((section.blocks.len(), section.terminal), (2, Terminal::First(1)));
    }

    #[test]
    fn a_long_curve_keeps_its_tail() {
        let points: Vec<(f64, f64)> = (1..=10_000).map(|n| (f64::from(n) * 1e6, f64::from(n) / 1e4)).collect();
        let thin = thinned(&points);
        assert!(thin.len() < 400, "{}", thin.len());
        assert!(thin.iter().filter(|point| point[1] > 0.99).count() > 10, "{thin:?}");
        assert!(super::super::tests::section(view, "").is_none());
    }
}
