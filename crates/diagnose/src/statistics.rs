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

/// Samples that a row of a recording stands for at most: the rate is lowered once.
pub const MAX_WEIGHT: f64 = 2.0;

/// Standard error of a share seen in `samples` that are so many `rows`: what a row stands for beyond one tells nothing new.
///
/// With the Laplace estimate (hits + 1) / (n + 2): ten samples of ten are not certainty.
pub fn share_error(hits: f64, samples: f64, rows: f64) -> f64 {
    let n = rows.max(samples / MAX_WEIGHT);
    if n <= 0.0 {
        return 0.5;
    }
    let p = share(hits * (n / samples) + 1.0, n + 2.0);
    (p * (1.0 - p) / n).sqrt()
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
    fn error_shrinks_with_samples_and_is_never_nothing() {
        assert!(share_error(50.0, 100.0, 100.0) > share_error(5_000.0, 10_000.0, 10_000.0));
        assert!(share_error(100.0, 200.0, 100.0) > share_error(100.0, 200.0, 200.0));
        assert!(share_error(10.0, 10.0, 10.0) > 0.05);
        assert_eq!(share_error(0.0, 0.0, 0.0), 0.5);
    }
}
