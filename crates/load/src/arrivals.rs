// SPDX-License-Identifier: Apache-2.0
//! When requests are due. The plan goes on whether or not answers come: what clients of a service do that does not
//! answer is to come all the same.

use std::time::Duration;

/// How requests are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// At random moments, as visitors come who do not know of each other, but as many in each second: what a plan asks is
    /// what was wanted, and no phase of a run is the plan's own.
    #[default]
    Poisson,
    /// All gaps are the same.
    Uniform,
}

/// The moments at which requests are due, from the start. The same rate has the same plan in every run, so that two runs
/// differ in the service only.
#[derive(Debug)]
pub struct Arrivals {
    spread: Spread,
    random: fastrand::Rng,
    /// A second, or what one request takes at lower rates, ns; and the requests in it.
    block_ns: f64,
    in_block: usize,
    blocks: usize,
    /// Those of the block that are left; and the next one, of the whole block.
    left: usize,
    next: f64,
}

impl Arrivals {
    /// `rate` a second.
    pub fn new(rate: f64, spread: Spread) -> Self {
        let in_block = rate.round().max(1.0);
        let mut arrivals = Self {
            spread,
            random: fastrand::Rng::with_seed(1),
            block_ns: 1e9 * in_block / rate,
            in_block: in_block as usize,
            blocks: 0,
            left: in_block as usize,
            next: 0.0,
        };
        arrivals.draw();
        arrivals
    }

    /// The next moment.
    pub fn next(&self) -> Duration {
        Duration::from_nanos(((self.blocks as f64 + self.next) * self.block_ns) as u64)
    }

    /// The next moment, if it has come; the one after it is next then.
    pub fn take(&mut self, now: Duration) -> Option<Duration> {
        let next = self.next();
        if next > now {
            return None;
        }
        self.left -= 1;
        if self.left == 0 {
            (self.left, self.next, self.blocks) = (self.in_block, 0.0, self.blocks + 1);
        }
        self.draw();
        Some(next)
    }

    /// Draws the next one. As many random moments as are left lie in the rest of the block, and this is the first of them: all of them
    /// at once would have to be sorted, which takes a loop of a million a second long enough to be late.
    fn draw(&mut self) {
        let left = self.left as f64;
        self.next = match self.spread {
            Spread::Uniform => (self.in_block - self.left) as f64 / self.in_block as f64,
            Spread::Poisson => 1.0 - (1.0 - self.next) * (1.0 - self.random.f64()).powf(1.0 / left),
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
        assert!(one.len() == 100_000 && one.is_sorted(), "{}", one.len());
        assert_eq!(one, other);
        let uniform = within(&mut Arrivals::new(1000.0, Spread::Uniform), 2);
        assert_eq!((uniform[0], uniform[1]), (Duration::ZERO, Duration::from_millis(1)));
        assert_eq!(within(&mut Arrivals::new(0.5, Spread::Poisson), 20).len(), 10, "one in two seconds");
    }

    /// As many in each second, however many there are, and no second of a million is drawn at once.
    #[test]
    fn a_million_a_second_are_drawn_one_by_one() {
        let mut arrivals = Arrivals::new(1e6, Spread::Poisson);
        let moments: Vec<Duration> = within(&mut arrivals, 1);
        assert!(moments.len().abs_diff(1_000_000) <= 1 && moments.is_sorted(), "{}", moments.len());
        let halves = moments.iter().filter(|moment| **moment < Duration::from_millis(500)).count();
        assert!(halves.abs_diff(500_000) < 2500, "{halves}: five standard deviations");
        assert!(std::mem::size_of_val(&arrivals) < 200, "it holds no second of them");
    }

    #[test]
    fn gaps_between_visitors_are_exponential() {
        let moments = within(&mut Arrivals::new(1000.0, Spread::Poisson), 100);
        let long = moments.windows(2).filter(|pair| pair[1] - pair[0] > Duration::from_millis(1)).count();
        let share = long as f64 / moments.len() as f64;
        assert!((0.35..0.39).contains(&share), "one gap in e is longer than the mean: {share}");
    }
}
