// SPDX-License-Identifier: Apache-2.0
//! Random numbers that are the same in each run (splitmix64): a comparison is a pure function of its recordings. Written
//! out, because a library may change its stream from one version to the next, and then the same two recordings would
//! have other intervals; normal and Student's numbers no small one has.

/// A stream of random numbers.
pub(super) struct Noise {
    state: u64,
    spare: Option<f64>,
}

impl Noise {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed, spare: None }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 and 1, neither of them.
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// One of `0..n`; 0 where there is nothing to choose from.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n.saturating_sub(1))
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let (radius, angle) = ((-2.0 * self.unit().ln()).sqrt(), self.unit() * std::f64::consts::TAU);
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// What a normal number is multiplied with to become one of Student's t with so many degrees of freedom.
    pub fn student(&mut self, freedom: usize) -> f64 {
        let square: f64 = (0..freedom).map(|_| self.normal().powi(2)).sum();
        (freedom as f64 / square.max(1e-12)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_as_they_should_be() {
        let mut noise = Noise::new(1);
        let normal: Vec<f64> = (0..20_000).map(|_| noise.normal()).collect();
        let mean = normal.iter().sum::<f64>() / 20_000.0;
        let variance = normal.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.04, "{mean} {variance}");
        // Student's t with 5 degrees of freedom has the variance 5 / 3.
        let student = (0..20_000).map(|_| (noise.normal() * noise.student(5)).powi(2)).sum::<f64>() / 20_000.0;
        assert!((1.45..1.9).contains(&student), "{student}");
        let mut seen = [0; 5];
        (0..5000).for_each(|_| seen[noise.below(5)] += 1);
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
        assert_eq!(noise.below(0), 0);
    }
}
