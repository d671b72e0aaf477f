// SPDX-License-Identifier: Apache-2.0
//! Simultaneous intervals for many differences between two series of time slices.
//!
//! Slices of one side are resampled in circular blocks, all columns of a slice together, so that what is
//! correlated in time or between measures stays so in each replicate. Replicates are widened for what
//! a bootstrap of few blocks leaves out (its variance is short by the share of a block, and it is
//! itself an estimate: a draw of Student's t), and by the floor between runs.
//! The critical value is the quantile of the *largest* standardised deviation in a family: the
//! intervals hold all at once.

use super::noise::Noise;

/// Replicates: enough for the 97.5 % quantile of a maximum.
const REPLICATES: usize = 2000;
/// Seed, so that the same recordings give the same bytes.
const SEED: u64 = 0x57a6_3e11;
/// Fewer slices than this have no variance that means anything.
pub(super) const FEWEST_SLICES: usize = 4;
/// Degrees of freedom of the floor between runs: it was itself measured, on seven runs.
const FLOOR_FREEDOM: usize = 6;

/// Sums of columns to a value; none where it is not defined.
pub(super) type Formula = Box<dyn Fn(&[f64]) -> Option<f64>>;

/// One number that is asked of both sides.
pub(super) struct Question {
    /// From sums of columns to the number.
    pub value: Formula,
    /// Compare by ratio, not by difference.
    pub by_ratio: bool,
    /// Standard deviation between two runs of the same thing, beyond what slices show, relative to the value.
    pub floor: f64,
    /// The same in the value's own unit.
    pub least: f64,
    /// What one event more would add, for counts: a count of 0 is not certainty.
    pub one_event: Option<Formula>,
    /// Not the value of all slices together, but this quantile of the values of single ones.
    pub quantile: Option<Quantile>,
}

/// A value of the quieter slices.
pub(super) struct Quantile {
    /// Which, 0 to 1.
    pub at: f64,
    /// What it is divided by, from the sums.
    pub by: Formula,
}

impl Question {
    /// The value of drawn slices.
    fn of(&self, drawn: &Draw, single: &[f64]) -> Option<f64> {
        let Some(quantile) = &self.quantile else { return (self.value)(&drawn.sums) };
        let mut values: Vec<f64> = drawn.indices.iter().map(|&i| single[i]).collect();
        let at = quantile.at * values.len().checked_sub(1)? as f64;
        let (below, part) = (at.floor() as usize, at.fract());
        let (_, low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
        let low = *low;
        let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
        (quantile.by)(&drawn.sums).filter(|by| *by > 0.0).map(|by| (low + (high - low) * part) / by)
    }
}

/// One side.
pub(super) struct Series<'a> {
    /// Columns of each slice.
    pub slices: &'a [Vec<f64>],
    /// Slices in a block.
    pub block: usize,
}

/// Slices that were drawn.
struct Draw {
    sums: Vec<f64>,
    indices: Vec<usize>,
}

/// The answer to one question, on the scale of the comparison: the natural logarithm of b / a, or b - a.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Value of the first side.
    pub a: f64,
    /// Value of the second side.
    pub b: f64,
    /// The difference.
    pub difference: f64,
    /// Half the width of the simultaneous interval; none where there is not enough to tell.
    pub half: Option<f64>,
    /// Standard error.
    pub error: f64,
    /// Whether the scale is the ratio's.
    pub by_ratio: bool,
}

/// Answers of one family, and its critical value in standard errors.
pub(super) struct Family {
    /// In the order of the questions; none where a side has no value.
    pub answers: Vec<Option<Answer>>,
    /// How many standard errors a difference must have.
    pub critical: f64,
}

/// Asks a family of questions; all intervals together miss a truth with a chance of `alpha`.
pub(super) fn ask(a: &Series<'_>, b: &Series<'_>, questions: &[Question], alpha: f64) -> Family {
    let totals = [a, b].map(|side| Draw { sums: total(side.slices), indices: (0..side.slices.len()).collect() });
    let asked: Vec<Option<Asked<'_>>> = questions.iter().map(|q| Asked::new(q, &totals, [a, b])).collect();
    let enough = a.slices.len() >= FEWEST_SLICES && b.slices.len() >= FEWEST_SLICES;
    let deviations = if enough { replicate([a, b], &asked) } else { vec![Vec::new(); questions.len()] };
    let errors: Vec<Option<f64>> = deviations.iter().map(|d| spread(d)).collect();
    let critical = critical(&deviations, &errors, alpha);
    let answer = |(asked, error): (&Option<Asked<'_>>, &Option<f64>)| {
        let asked = asked.as_ref()?;
        let [a, b] = asked.values;
        let half = error.map(|e| e * critical).filter(|h| h.is_finite());
        let by_ratio = asked.by_ratio;
        Some(Answer { a, b, difference: asked.scale(b) - asked.scale(a), half, error: error.unwrap_or(0.0), by_ratio })
    };
    Family { answers: asked.iter().zip(&errors).map(answer).collect(), critical }
}

/// A question with the values of both sides.
struct Asked<'q> {
    question: &'q Question,
    values: [f64; 2],
    /// Values of single slices, where a quantile of them is asked for.
    single: [Vec<f64>; 2],
    one_event: [f64; 2],
    /// What blocks leave out of the correlation in time.
    memory: [f64; 2],
    by_ratio: bool,
}

impl<'q> Asked<'q> {
    fn new(question: &'q Question, totals: &[Draw; 2], sides: [&Series<'_>; 2]) -> Option<Self> {
        let slices = |side: &Series<'_>| side.slices.iter().map(|s| (question.value)(s)).collect::<Option<Vec<f64>>>();
        let single = match question.quantile {
            Some(_) => [slices(sides[0])?, slices(sides[1])?],
            None => [Vec::new(), Vec::new()],
        };
        let value = |i: usize| question.of(&totals[i], &single[i]).filter(|v| v.is_finite());
        let values = [value(0)?, value(1)?];
        let one = |i: usize| question.one_event.as_ref().and_then(|f| f(&totals[i].sums)).unwrap_or(0.0);
        // Nothing has no ratio to something.
        let by_ratio = question.by_ratio && values.iter().all(|v| *v > 0.0);
        let memory = sides.map(|side| memory(side, question));
        Some(Self { question, values, single, one_event: [one(0), one(1)], memory, by_ratio })
    }

    fn scale(&self, value: f64) -> f64 {
        if self.by_ratio { value.ln() } else { value }
    }

    /// Deviation of one side in one replicate; `widen` is for the slices, `floor` for the floor between runs.
    fn deviation(&self, side: usize, drawn: &Draw, widen: f64, floor: f64, noise: &mut Noise) -> f64 {
        let value =
            self.question.of(drawn, &self.single[side]).filter(|v| v.is_finite() && (!self.by_ratio || *v > 0.0));
        let Some(value) = value else { return f64::NAN };
        let whole = self.values[side].abs();
        let own = (self.scale(value) - self.scale(self.values[side])) * widen * self.memory[side];
        // Relative on the scale of a ratio.
        let unit = if self.by_ratio { 1.0 / whole } else { 1.0 };
        let between = (self.question.floor * whole).hypot(self.question.least) * unit;
        let between = between * floor * noise.normal();
        own + between + self.one_event[side] * unit * noise.normal()
    }
}

/// Deviations of each question in each replicate.
fn replicate(sides: [&Series<'_>; 2], asked: &[Option<Asked<'_>>]) -> Vec<Vec<f64>> {
    let mut noise = Noise::new(SEED);
    let mut out = vec![Vec::with_capacity(REPLICATES); asked.len()];
    let mut drawn = sides.map(|_| Draw { sums: Vec::new(), indices: Vec::new() });
    for _ in 0..REPLICATES {
        for (side, drawn) in sides.iter().zip(&mut drawn) {
            resampled(side, &mut noise, drawn);
        }
        let widen = sides.map(|side| widening(side, &mut noise));
        let floor = noise.student(FLOOR_FREEDOM);
        for (asked, out) in asked.iter().zip(&mut out) {
            let Some(asked) = asked else { continue };
            let deviation =
                |side: usize, noise: &mut Noise| asked.deviation(side, &drawn[side], widen[side], floor, noise);
            out.push(deviation(1, &mut noise) - deviation(0, &mut noise));
        }
    }
    out
}

/// By how much a replicate of a side is widened: for its blocks, and for the doubt about a variance from so few of
/// them (Student's t; one draw for all questions, as in the multivariate distribution).
fn widening(side: &Series<'_>, noise: &mut Noise) -> f64 {
    let (n, block) = (side.slices.len(), side.block);
    let blocks = (n as f64 / (n - block.min(n - 1)) as f64).sqrt();
    // Overlapping blocks know half as much again as blocks that do not (Meketon and Schmeiser 1984).
    blocks * noise.student((n * 3 / (block * 2)).saturating_sub(1).max(3))
}

/// By how much blocks understate a question's error, if its slices remember the one before as the data say (an
/// autoregression of the first order, whose estimate from few slices is corrected for its bias).
fn memory(side: &Series<'_>, question: &Question) -> f64 {
    let Some(values) = side.slices.iter().map(|s| (question.value)(s)).collect::<Option<Vec<f64>>>() else {
        return 1.0;
    };
    let n = values.len() as f64;
    let first = correlation(&values, 1);
    let first = (first + (1.0 + 3.0 * first) / n).clamp(0.0, 0.9);
    let block = side.block as f64;
    let within: f64 = (1..side.block).map(|k| (1.0 - k as f64 / block) * first.powi(k as i32)).sum();
    ((1.0 + first) / (1.0 - first) / (1.0 + 2.0 * within)).sqrt()
}

/// As many slices as there are, drawn in blocks that wrap around the end.
fn resampled(side: &Series<'_>, noise: &mut Noise, drawn: &mut Draw) {
    let n = side.slices.len();
    drawn.indices.clear();
    while drawn.indices.len() < n {
        let first = noise.below(n);
        let block = side.block.min(n - drawn.indices.len());
        drawn.indices.extend((first..first + block).map(|i| i % n));
    }
    drawn.sums.clear();
    drawn.sums.resize(side.slices[0].len(), 0.0);
    drawn.indices.iter().for_each(|&i| add(&mut drawn.sums, &side.slices[i]));
}

fn add(sums: &mut [f64], slice: &[f64]) {
    sums.iter_mut().zip(slice).for_each(|(sum, value)| *sum += value);
}

/// Sums of all slices.
pub(super) fn total(slices: &[Vec<f64>]) -> Vec<f64> {
    let mut sums = vec![0.0; slices.first().map_or(0, Vec::len)];
    slices.iter().for_each(|slice| add(&mut sums, slice));
    sums
}

/// Standard deviation; none where a good part of the replicates had no value.
fn spread(deviations: &[f64]) -> Option<f64> {
    let defined: Vec<f64> = deviations.iter().copied().filter(|d| d.is_finite()).collect();
    if defined.is_empty() || defined.len() < deviations.len() * 19 / 20 {
        return None;
    }
    let mean = defined.iter().sum::<f64>() / defined.len() as f64;
    let variance = defined.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / defined.len() as f64;
    Some(variance.sqrt())
}

/// The quantile of the largest standardised deviation.
fn critical(deviations: &[Vec<f64>], errors: &[Option<f64>], alpha: f64) -> f64 {
    let standard = |(d, e): (&Vec<f64>, &Option<f64>), i: usize| match (d.get(i), e) {
        (Some(d), Some(e)) if *e > 0.0 && d.is_finite() => (d / e).abs(),
        _ => 0.0,
    };
    let mut largest: Vec<f64> = (0..REPLICATES)
        .map(|i| deviations.iter().zip(errors).map(|pair| standard(pair, i)).fold(0.0, f64::max))
        .collect();
    largest.sort_by(f64::total_cmp);
    let at = ((1.0 - alpha) * REPLICATES as f64).ceil() as usize;
    largest[at.min(REPLICATES - 1)]
}

/// Slices in a block: as far as neighbours are alike, by the autocorrelation of what is left of each series when its
/// mean is taken out; at least the cube root of their number, at most a quarter.
pub(super) fn block_length(series: &[Vec<f64>], n: usize) -> usize {
    let least = (n as f64).cbrt().round() as usize;
    let alike = series.iter().map(|s| reach(s)).max().unwrap_or(0);
    (alike + 1).max(least).min(n / FEWEST_SLICES).max(1)
}

/// The lag up to which values are correlated beyond chance.
fn reach(values: &[f64]) -> usize {
    let chance = 2.0 / (values.len() as f64).sqrt();
    (1..values.len() / 2).take_while(|&lag| correlation(values, lag) > chance).last().unwrap_or(0)
}

/// Autocorrelation at a lag; 0 of a series that does not vary.
fn correlation(values: &[f64], lag: usize) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let at = |lag: usize| values.iter().zip(&values[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let all = at(0);
    if all > 0.0 && all.is_finite() { at(lag) / all } else { 0.0 }
}

#[cfg(test)]
#[path = "resample/tests.rs"]
mod tests;
