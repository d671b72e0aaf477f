// SPDX-License-Identifier: Apache-2.0
//! Looks that take long: they are for a hundredth of the time at most.

use std::time::Instant;

/// So many times as long as a look took, until the next one.
const SHARE: u32 = 100;

/// When to look again.
#[derive(Debug)]
pub struct Seldom(Instant);

impl Default for Seldom {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Seldom {
    /// Whether it is time, and since when.
    pub fn begin(&self) -> Option<Instant> {
        let now = Instant::now();
        (now >= self.0).then_some(now)
    }

    /// One that began then is over.
    pub fn end(&mut self, began: Instant) {
        self.0 = Instant::now() + began.elapsed() * SHARE;
    }
}
