// SPDX-License-Identifier: Apache-2.0
//! When requests are due. The plan goes on whether or not answers come: what clients of a service do that does not
//! answer is to come all the same.

use std::time::Duration;

/// How requests are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// Gaps are exponential, as between visitors who do not know of each other.
    #[default]
    Poisson,
    /// All gaps are the same.
    Uniform,
}

/// The moments at which requests are due, ns from the start. The same rate has the same plan in every run, so that two
/// runs differ in the service only.
#[derive(Debug)]
pub struct Arrivals {
    mean_ns: f64,
    next_ns: f64,
    spread: Spread,
    random: fastrand::Rng,
}

impl Arrivals {
    /// `rate` a second.
    pub fn new(rate: f64, spread: Spread) -> Self {
        let mut arrivals = Self { mean_ns: 1e9 / rate, next_ns: 0.0, spread, random: fastrand::Rng::with_seed(1) };
        arrivals.advance();
        arrivals
    }

    /// The next moment.
    pub fn next(&self) -> Duration {
        Duration::from_nanos(self.next_ns as u64)
    }

    /// The next moment, if it has come; the one after it is next then.
    pub fn take(&mut self, now: Duration) -> Option<Duration> {
        let next = self.next();
        (next <= now).then(|| {
            self.advance();
            next
        })
    }

    fn advance(&mut self) {
        self.next_ns += match self.spread {
            Spread::Uniform => self.mean_ns,
            // 1 - u lies in (0, 1], where the logarithm is finite.
            Spread::Poisson => -(1.0 - self.random.f64()).ln() * self.mean_ns,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(arrivals: &mut Arrivals, seconds: u64) -> Vec<Duration> {
        std::iter::from_fn(|| arrivals.take(Duration::from_secs(seconds))).collect()
    }

    #[test]
    fn rates_are_kept_and_plans_are_always_the_same() {
        let [one, other] = [(); 2].map(|()| within(&mut Arrivals::new(10_000.0, Spread::Poisson), 10));
        assert!((99_000..101_000).contains(&one.len()) && one.is_sorted(), "{}", one.len());
        assert_eq!(one, other);
        let uniform = within(&mut Arrivals::new(1000.0, Spread::Uniform), 2);
        assert_eq!((uniform.len(), uniform[0]), (2000, Duration::from_millis(1)));
    }

    #[test]
    fn gaps_between_visitors_are_exponential() {
        let moments = within(&mut Arrivals::new(1000.0, Spread::Poisson), 100);
        let long = moments.windows(2).filter(|pair| pair[1] - pair[0] > Duration::from_millis(1)).count();
        let share = long as f64 / moments.len() as f64;
        assert!((0.35..0.39).contains(&share), "one gap in e is longer than the mean: {share}");
    }
}
