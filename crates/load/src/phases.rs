// SPDX-License-Identifier: Apache-2.0
//! Stretches of a load in which it went differently: fast for two seconds and slow from then on is no slow service and no
//! fast one, and a mean over both is neither.

use std::ops::Range;

use crate::lengths::Lengths;
use crate::run::Second;

/// The shortest stretch, in pieces; whatever is shorter is a bad moment, which percentiles show.
const SHORTEST: usize = 2;
/// Pieces that a load is cut into at most: a second each, or more of a long load.
const PIECES: usize = 120;
/// By how much a further stretch has to describe the pieces better, in units of what is a difference.
const WORTH: f64 = 2.0;
/// By how much the usual response time, and the answers to what was due, differ at least; and the share of failures.
const SLOWER: f64 = 1.5;
const FEWER: f64 = 1.25;
const FAILING: f64 = 0.05;

/// Of a piece without an answer, and of quicker ones, s.
const SHORTEST_TIME: f64 = 1e-6;
/// By how many standard errors of a piece it has to be more than that: of few answers that differ much, each piece is another.
const CHANCE: f64 = 2.5;
/// Answers of a piece at least.
const ANSWERS: f64 = 50.0;
/// Pieces at least, where larger ones would be less by chance.
const FEWEST: usize = 8;

/// What a piece is like: its usual response time, the share of answers to what was due, both as logarithms, and that of failures.
type Trait = [f64; 3];

/// Pieces of a load.
struct Pieces {
    /// Seconds of each.
    size: usize,
    /// What each is like, in units of what is a difference.
    traits: Vec<Trait>,
    /// Whether chance makes less of response times than what is a difference anyway.
    is_sure: bool,
}

/// The stretches, in seconds from the start; one if all of it went alike.
pub(crate) fn stretches(seconds: &[Second]) -> Vec<Range<usize>> {
    let Pieces { size, traits, .. } = pieces_of(seconds);
    let mut found: Vec<Range<usize>> = Vec::new();
    for part in best_parts(&traits) {
        match found.last_mut() {
            Some(last) if !differ(&traits[last.clone()], &traits[part.clone()]) => last.end = part.end,
            _ => found.push(part),
        }
    }
    found.into_iter().map(|part| part.start * size..(part.end * size).min(seconds.len())).collect()
}

/// A second each, or as many as it takes for a piece to have enough answers, or for chance to be small.
fn pieces_of(seconds: &[Second]) -> Pieces {
    let due: u64 = seconds.iter().map(|second| second.due).sum();
    let enough = (ANSWERS * seconds.len() as f64 / due.max(1) as f64).ceil() as usize;
    let most = seconds.len().div_ceil(FEWEST).max(1);
    let mut size = seconds.len().div_ceil(PIECES).max(enough.min(most)).max(1);
    loop {
        let pieces = Pieces::of(seconds, size);
        if pieces.is_sure || 2 * size > most {
            return pieces;
        }
        size *= 2;
    }
}

impl Pieces {
    fn of(seconds: &[Second], size: usize) -> Self {
        let pieces: Vec<Piece> = seconds.chunks(size).map(Piece::of).collect();
        // Within pieces, so that a change from one to another is none of it.
        let with = || pieces.iter().filter(|piece| piece.answers > 0.0);
        let each = with().map(|piece| 1.0 / piece.answers).sum::<f64>() / (with().count() as f64).max(1.0);
        let answers = with().map(|piece| piece.answers).sum::<f64>().max(1.0);
        let error = |nth: usize| {
            let variance = with().map(|piece| piece.variances[nth] * piece.answers).sum::<f64>() / answers;
            CHANCE * (variance * each).sqrt()
        };
        let units = [(0, SLOWER.ln()), (1, FEWER.ln()), (2, FAILING)].map(|(nth, unit)| (unit, unit.max(error(nth))));
        let traits = pieces.iter().map(|piece| [0, 1, 2].map(|nth| piece.traits[nth] / units[nth].1));
        Self { size, traits: traits.collect(), is_sure: units[0].1 <= units[0].0 }
    }
}

/// A piece, and how much one request in it differs from another in each of its traits.
struct Piece {
    traits: Trait,
    variances: Trait,
    answers: f64,
}

impl Piece {
    fn of(piece: &[Second]) -> Self {
        let mut latency = Lengths::default();
        piece.iter().for_each(|second| latency.add_all(&second.latency));
        let (usual, variance) = latency.logarithms().unwrap_or((SHORTEST_TIME.ln(), 0.0));
        let [due, failed] =
            [|s: &Second| s.due, |s: &Second| s.failed].map(|of| piece.iter().map(of).sum::<u64>() as f64);
        let answers = piece.iter().map(|second| second.service.count()).sum::<u64>() as f64;
        // Of what was due: at low rates the number of answers is chance.
        let kept = (answers + 1.0) / (due + 1.0);
        let failing = failed / (answers + failed).max(1.0);
        Self {
            traits: [usual.max(SHORTEST_TIME.ln()), kept.ln(), failing],
            variances: [variance, ((1.0 - kept) / kept).max(0.0), failing * (1.0 - failing)],
            answers,
        }
    }
}

/// The parts in which pieces are most alike, each part worth its being told: the best of all ways, from the start on.
fn best_parts(traits: &[Trait]) -> Vec<Range<usize>> {
    // By the end of the last part: what all parts so far cost, and where the last one begins.
    let mut best = vec![(0.0, 0)];
    for end in 1..=traits.len() {
        let starts = (0..=end.saturating_sub(SHORTEST)).filter(|start| *start == 0 || *start >= SHORTEST);
        let cost =
            |start: usize| best[start].0 + WORTH + (0..3).map(|nth| spread(&traits[start..end], nth)).sum::<f64>();
        let cheapest = starts.map(|start| (cost(start), start)).min_by(|a, b| a.0.total_cmp(&b.0));
        best.push(cheapest.unwrap_or_default());
    }
    let (mut parts, mut end) = (Vec::new(), traits.len());
    while end > 0 {
        let start = best[end].1;
        parts.insert(0, start..end);
        end = start;
    }
    parts
}

/// Whether two parts differ in anything, usually by a unit.
fn differ(before: &[Trait], after: &[Trait]) -> bool {
    (0..3).any(|nth| (median(before, nth) - median(after, nth)).abs() >= 1.0)
}

fn spread(part: &[Trait], nth: usize) -> f64 {
    let middle = median(part, nth);
    part.iter().map(|each| (each[nth] - middle).abs()).sum()
}

fn median(part: &[Trait], nth: usize) -> f64 {
    let mut values: Vec<f64> = part.iter().map(|each| each[nth]).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn second(answers: u64, ms: u64, failed: u64) -> Second {
        let mut second = Second { failed, due: 100, ..Second::default() };
        (0..answers).for_each(|nth| {
            second.latency.add(Duration::from_micros(ms * 1000 + nth % 7));
            second.service.add(Duration::from_micros(ms * 1000));
        });
        second
    }

    /// Half of the answers take 2 ms, half 10 ms, and a little more of the one in some seconds, of the other in others.
    #[test]
    fn a_median_that_lies_between_two_kinds_of_answers_is_no_phase() {
        let second = |nth: u64| {
            let mut second = Second { due: 100, sent: 100, ..Second::default() };
            let quick = if nth < 5 { 51 } else { 49 };
            for (count, ms) in [(quick, 2), (100 - quick, 10)] {
                second.latency.add_many(Duration::from_millis(ms), count);
                second.service.add_many(Duration::from_millis(ms), count);
            }
            second
        };
        let seconds: Vec<Second> = (0..8).map(second).collect();
        assert_eq!(stretches(&seconds).len(), 1);
    }

    #[test]
    fn what_goes_alike_is_one() {
        let whole = 0..20;
        let alike: Vec<Second> = (0..20).map(|nth| second(95 + nth % 10, 10 + nth % 3, 0)).collect();
        assert_eq!(stretches(&alike), vec![whole.clone()]);
        assert!(stretches(&[]).is_empty());
        let mut bad_moment = alike;
        bad_moment[7] = second(100, 900, 0);
        assert_eq!(stretches(&bad_moment), vec![whole], "one bad second is no phase");
    }

    #[test]
    fn a_service_that_slows_down_loses_answers_or_fails() {
        let of = |parts: &[(usize, u64, u64, u64)]| {
            let seconds =
                parts.iter().flat_map(|(n, answers, ms, failed)| (0..*n).map(|_| second(*answers, *ms, *failed)));
            stretches(&seconds.collect::<Vec<_>>())
        };
        assert_eq!(of(&[(3, 100, 1, 0), (9, 100, 20, 0)]), [0..3, 3..12]);
        assert_eq!(of(&[(3, 100, 5, 0), (9, 30, 5, 0)]), [0..3, 3..12]);
        assert_eq!(of(&[(5, 100, 5, 0), (5, 80, 5, 20)]), [0..5, 5..10]);
        assert_eq!(of(&[(4, 100, 1, 0), (4, 100, 20, 0), (4, 100, 1, 0)]), [0..4, 4..8, 8..12]);
        assert_eq!(of(&[(600, 100, 1, 0), (3000, 100, 20, 0)]), [0..600, 600..3600]);
    }

    /// Requests of two minutes at ten a second, by chance; of the second minute they take so many times as long.
    fn by_chance(seed: u64, slower: f64, takes: impl Fn(&mut fastrand::Rng) -> f64) -> Vec<Second> {
        let mut random = fastrand::Rng::with_seed(seed);
        let one = |nth: u64| {
            let mut second = Second { due: 10, sent: 10, ..Second::default() };
            for _ in 0..10 {
                let takes = takes(&mut random) * if nth < 60 { 1.0 } else { slower };
                second.latency.add(Duration::from_secs_f64(takes));
                second.service.add(Duration::from_secs_f64(takes));
            }
            second
        };
        (0..120).map(one).collect()
    }

    #[test]
    fn few_answers_that_differ_much_are_no_phases() {
        let kinds: [fn(&mut fastrand::Rng) -> f64; 3] = [
            |random| if random.bool() { 0.001 } else { 0.3 },
            |random| if random.u32(..10) == 0 { 1.0 } else { 0.002 },
            |random| -0.1 * (1.0 - random.f64()).ln(),
        ];
        for (nth, takes) in kinds.into_iter().enumerate() {
            let alike = (0..200).filter(|seed| stretches(&by_chance(*seed, 1.0, takes)).len() == 1).count();
            let found = (0..200).filter(|seed| stretches(&by_chance(*seed, 3.0, takes)).len() == 2).count();
            assert!(alike >= 190 && found >= 190, "{nth}: {alike} alike, {found} changes found");
        }
    }
}
