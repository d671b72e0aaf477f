// SPDX-License-Identifier: Apache-2.0
//! From values to places along an axis, and which of them are worth a tick.

/// Ticks along an axis at most: on a telephone more would touch.
const TICKS: usize = 8;
/// Steps between ticks, within a power of ten.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

/// An axis from its least value to its most.
pub struct Scale {
    least: f64,
    most: f64,
    logarithmic: bool,
}

impl Scale {
    /// The scale that holds all values: from zero to the most and some headroom, or between round numbers if it is logarithmic;
    /// none where there is nothing to show.
    pub fn of(values: impl Iterator<Item = f64> + Clone, logarithmic: bool, headroom: f64) -> Option<Self> {
        let positive = values.filter(|value| value.is_finite() && (*value > 0.0 || !logarithmic));
        let most = positive.clone().max_by(f64::total_cmp)?;
        let least = positive.min_by(f64::total_cmp)?;
        if !logarithmic {
            let most = if most > 0.0 { most * headroom } else { 1.0 };
            return Some(Self { least: 0.0, most, logarithmic });
        }
        let round = round_numbers(least, most);
        let below = round.iter().rev().find(|value| **value <= least * 1.001).copied();
        let above = round.iter().find(|value| **value >= most * 0.999).copied();
        let (least, most) = (below.unwrap_or(least), above.unwrap_or(most));
        // One value alone has a place in the middle.
        let (least, most) = if least < most { (least, most) } else { (least / 2.0, most * 2.0) };
        Some(Self { least, most, logarithmic })
    }

    /// The place of a value, 0 to 1; none if it has none.
    pub fn at(&self, value: f64) -> Option<f64> {
        let (value, least, most) = match self.logarithmic {
            true => (value.log10(), self.least.log10(), self.most.log10()),
            false => (value, self.least, self.most),
        };
        Some((value - least) / (most - least)).filter(|place| place.is_finite())
    }

    /// Round values for ticks, ascending.
    pub fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            let steps = round_numbers(self.most / 100.0, self.most);
            let step = steps.into_iter().find(|step| self.most / step < TICKS as f64).unwrap_or(self.most);
            return (0..=(self.most / step * 1.0001) as u32).map(|nth| f64::from(nth) * step).collect();
        }
        let within = |value: &f64| *value >= self.least * 0.999 && *value <= self.most * 1.001;
        let round: Vec<f64> = round_numbers(self.least, self.most).into_iter().filter(within).collect();
        let is_ten = |value: &f64| (value.log10() - value.log10().round()).abs() < 1e-9;
        let tens: Vec<f64> = round.iter().copied().filter(is_ten).collect();
        let ticks = if round.len() > TICKS { tens } else { round };
        let every = ticks.len().div_ceil(TICKS).max(1);
        ticks.into_iter().step_by(every).collect()
    }
}

/// 1, 2 and 5 and their tens, from below one value to above another.
fn round_numbers(least: f64, most: f64) -> Vec<f64> {
    let powers = least.log10().floor() as i32..=most.log10().ceil() as i32;
    powers.flat_map(|power| ROUND.map(|round| round * 10_f64.powi(power))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[f64], logarithmic: bool) -> Vec<f64> {
        let ticks = Scale::of(values.iter().copied(), logarithmic, 1.0).unwrap().ticks();
        ticks.into_iter().map(|tick| (tick * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(&[0.0, 1.0], false), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(ticks(&[3.0, 19.0], false), [0.0, 5.0, 10.0, 15.0]);
        assert_eq!(ticks(&[50.0, 2000.0], true), [50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0]);
        assert_eq!(ticks(&[5.0, 40_000.0], true), [10.0, 100.0, 1000.0, 10_000.0]);
        assert_eq!(ticks(&[0.003], true), [0.002, 0.005]);
        assert_eq!(ticks(&[0.0], false).len(), 6);
    }

    #[test]
    fn places_are_within_the_axis() {
        let scale = Scale::of([10.0, 1000.0].into_iter(), true, 1.0).unwrap();
        assert_eq!([10.0, 100.0, 1000.0].map(|value| scale.at(value).unwrap()), [0.0, 0.5, 1.0]);
        assert!(scale.at(0.0).is_none() && scale.at(f64::NAN).is_none());
        assert!(Scale::of([0.0].into_iter(), true, 1.0).is_none());
        let alone = Scale::of([10.0].into_iter(), true, 1.0).unwrap();
        assert!((alone.at(10.0).unwrap() - 0.5).abs() < 1e-9);
    }
}
