// SPDX-License-Identifier: Apache-2.0
//! All response times by rate, on one axis: where answers are slower at lower load, its curve lies to the right.

use load::{Step, rounded};

use crate::load::{SweepAnswer, times};
use crate::section::pictures::{Curve, Distribution};
use crate::section::{Block, Section, Terminal};

use super::by_rate;

/// The picture.
pub fn part(answer: &SweepAnswer) -> Option<Section> {
    let steps: Vec<&Step> = by_rate(answer).into_iter().filter(|step| step.verdict.curve.len() > 1).collect();
    let curves: Vec<Curve> = steps.chunk_by(|a, b| a.rate == b.rate).map(curve).collect();
    let title = "Share of the answers that take at most so long, from when they were due, by requests a second".into();
    let block = Block::Distribution(Distribution { title, curves, graded: true });
    (!steps.is_empty()).then(|| Section::new("distribution", "All response times", vec![block], Terminal::Nothing))
}

/// Of all loads of a rate together.
fn curve(tries: &[&Step]) -> Curve {
    let all: f64 = tries.iter().map(|step| step.verdict.answered as f64).sum();
    let mut lengths: Vec<f64> = tries.iter().flat_map(|step| &step.verdict.curve).map(|point| point.0).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.dedup();
    let share = |length: f64| {
        let of = |step: &&Step| step.verdict.answered as f64 * not_longer(&step.verdict.curve, length);
        tries.iter().map(of).sum::<f64>() / all.max(1.0)
    };
    let points = lengths.into_iter().map(|length| [length, share(length)]).collect();
    Curve { label: format!("{}/s", rounded(tries[0].rate)), points, known: Some(times::known(all)) }
}

fn not_longer(curve: &[(f64, f64)], length: f64) -> f64 {
    let next = curve.partition_point(|point| point.0 <= length);
    next.checked_sub(1).map_or(0.0, |last| curve[last].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::{Run, judge};

    #[test]
    fn loads_of_a_rate_are_one_curve() {
        let step = |answered, curve: &[(f64, f64)]| {
            let mut verdict = judge(&Run::default(), None);
            (verdict.answered, verdict.curve) = (answered, curve.to_vec());
            Step { rate: 50.0, sustained: true, verdict, service: None }
        };
        let (few, many) = (step(100, &[(0.1, 0.5), (0.2, 1.0)]), step(300, &[(0.15, 1.0)]));
        let curve = curve(&[&few, &many]);
        assert_eq!(curve.points, [[0.1, 0.125], [0.15, 0.875], [0.2, 1.0]]);
        assert!(curve.label == "50/s" && curve.knows(0.9) && !curve.knows(0.99), "{:?}", curve.known);
    }
}
