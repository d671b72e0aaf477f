// SPDX-License-Identifier: Apache-2.0
//! Whether requests that stand in the target for long, and that nothing explains, could be lost time.

use crate::facts::unexplained::Unexplained;

/// Requests: half of one is always there or not.
pub(crate) const MIN_REST: f64 = 0.5;

/// Requests at a time that are nearly none.
pub(crate) const HARDLY_ANY: f64 = 0.05;

/// Of all that stood for long.
pub(crate) const MIN_SHARE: f64 = 0.25;

/// Whether what is left could be lost time.
pub(crate) fn matters(requests: &Unexplained) -> bool {
    requests.rest() >= MIN_REST && requests.rest() >= requests.late * MIN_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_request_or_a_small_part_of_many_does_not() {
        let seen = |late, waiting| matters(&Unexplained { late, waiting, ..Unexplained::default() });
        assert!(seen(8.0, 0.0) && seen(8.0, 5.0));
        assert!(!seen(0.2, 0.0) && !seen(8.0, 7.0) && !seen(80.0, 70.0));
    }
}
