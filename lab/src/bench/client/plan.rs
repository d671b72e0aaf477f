// SPDX-License-Identifier: Apache-2.0
//! When requests are due, and the diary of what became of them.
//!
//! Gaps are exponential, as between visitors who do not know of each other, but come from a fixed
//! sequence: every run of a rate has the same plan, so that two runs differ only in the service.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// When the plan wanted its request to be sent, CLOCK_MONOTONIC ns.
    pub wanted_ns: u64,
    /// From then until the answer was whole.
    pub took_ns: u32,
    /// From then until the request was sent.
    pub lag_ns: u32,
}

/// The moments at which requests are due.
pub struct Plan {
    mean_ns: f64,
    next_ns: f64,
    state: u64,
}

impl Plan {
    /// `rate` a second from `begin_ns` on.
    pub fn new(rate: f64, begin_ns: u64) -> Self {
        let mut plan = Self { mean_ns: 1e9 / rate, next_ns: begin_ns as f64, state: 1 };
        plan.advance();
        plan
    }

    /// The next moment.
    pub fn next_ns(&self) -> u64 {
        self.next_ns as u64
    }

    /// Takes all moments up to `now_ns`.
    pub fn due(&mut self, now_ns: u64) -> Vec<u64> {
        let mut due = Vec::new();
        while self.next_ns() <= now_ns {
            due.push(self.next_ns());
            self.advance();
        }
        due
    }

    fn advance(&mut self) {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = ((self.state >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        self.next_ns -= uniform.ln() * self.mean_ns;
    }
}

/// Writes a diary, 16 bytes an answer.
pub fn write_diary(path: &Path, diary: &[Answer]) -> Result<()> {
    let mut bytes = Vec::with_capacity(diary.len() * 16);
    for answer in diary {
        bytes.extend(answer.wanted_ns.to_ne_bytes());
        bytes.extend(answer.took_ns.to_ne_bytes());
        bytes.extend(answer.lag_ns.to_ne_bytes());
    }
    fs::write(path, bytes).with_context(|| format!("failed to write `{}`", path.display()))
}

/// Reads a diary.
///
/// # Errors
/// It is not there: the client failed.
pub fn read_diary(path: &Path) -> Result<Vec<Answer>> {
    let bytes = fs::read(path).with_context(|| format!("failed to read `{}`", path.display()))?;
    let (answers, _) = bytes.as_chunks::<16>();
    Ok(answers.iter().map(parse).collect())
}

fn parse(bytes: &[u8; 16]) -> Answer {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *bytes;
    Answer {
        wanted_ns: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        took_ns: u32::from_ne_bytes([i, j, k, l]),
        lag_ns: u32::from_ne_bytes([m, n, o, p]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_keeps_its_rate_and_is_always_the_same() {
        let begin = 1_000_000_000_000;
        let due = Plan::new(10_000.0, begin).due(begin + 10_000_000_000);
        assert!((99_000..101_000).contains(&due.len()), "{}", due.len());
        assert!(due.is_sorted() && due[0] > begin);
        assert_eq!(due, Plan::new(10_000.0, begin).due(begin + 10_000_000_000));
    }

    #[test]
    fn a_diary_comes_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let diary = [
            Answer { wanted_ns: u64::MAX - 5, took_ns: 7, lag_ns: u32::MAX },
            Answer { wanted_ns: 1, took_ns: 2, lag_ns: 3 },
        ];
        write_diary(&dir.path().join("d"), &diary).unwrap();
        assert_eq!(read_diary(&dir.path().join("d")).unwrap(), diary);
    }
}
