// SPDX-License-Identifier: Apache-2.0
//! Arithmetic that never divides by zero and never yields a number that is not one.

/// `part / whole`, 0 where that is undefined.
pub fn ratio(part: f64, whole: f64) -> f64 {
    let r = part / whole;
    if r.is_finite() { r } else { 0.0 }
}

/// [`ratio`] held between 0 and 1.
pub fn share(part: f64, whole: f64) -> f64 {
    ratio(part, whole).clamp(0.0, 1.0)
}

/// Samples that a row of a recording stands for at most: as far as a capture slows its clocks down.
const MAX_WEIGHT: f64 = 8.0;

/// How much rows of different weight tell together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weights {
    sum: f64,
    squares: f64,
}

impl Weights {
    /// Takes in a row that stands for so many samples.
    pub fn add(&mut self, weight: f64) {
        self.sum += weight;
        self.squares += weight * weight;
    }

    /// So many samples of the full rate would tell as much: all of them, or less if rows stand for several (Kish's
    /// effective sample size). A row that stands for more than a clock ever does was written by hand for many.
    pub fn effective(&self) -> f64 {
        ratio(self.sum * self.sum, self.squares).max(self.sum / MAX_WEIGHT)
    }
}

/// Standard error of a share seen in `samples` that tell as much as `effective` ones.
///
/// With the Laplace estimate (hits + 1) / (n + 2): ten samples of ten are not certainty.
pub fn share_error(hits: f64, samples: f64, effective: f64) -> f64 {
    if effective <= 0.0 {
        return 0.5;
    }
    let p = share(hits * (effective / samples) + 1.0, effective + 2.0);
    (p * (1.0 - p) / effective).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undefined_is_zero() {
        assert_eq!(ratio(1.0, 0.0), 0.0);
        assert_eq!(ratio(f64::NAN, 2.0), 0.0);
        assert_eq!(share(3.0, 2.0), 1.0);
    }

    #[test]
    fn rows_that_stand_for_several_tell_less() {
        let of = |weights: &[f64]| {
            let mut all = Weights::default();
            weights.iter().for_each(|weight| all.add(*weight));
            all.effective()
        };
        assert_eq!(of(&[]), 0.0);
        assert_eq!(of(&[1.0; 10]), 10.0);
        assert_eq!(of(&[8.0; 10]), 10.0);
        assert_eq!(of(&[80.0]), 10.0);
        let mixed = of(&[1.0, 1.0, 1.0, 1.0, 8.0]);
        assert!((1.5..5.0).contains(&mixed), "{mixed}");
    }

    #[test]
    fn error_shrinks_with_samples_and_is_never_nothing() {
        assert!(share_error(50.0, 100.0, 100.0) > share_error(5_000.0, 10_000.0, 10_000.0));
        assert!(share_error(100.0, 200.0, 100.0) > share_error(100.0, 200.0, 200.0));
        assert!(share_error(10.0, 10.0, 10.0) > 0.05);
        assert_eq!(share_error(0.0, 0.0, 0.0), 0.5);
    }
}
