// SPDX-License-Identifier: Apache-2.0
//! How fast the machine is just now: the CPU time that a fixed piece of work takes.
//!
//! The same service costs more CPU time while a hyperthread's sibling, a shared cache or another guest of the
//! hypervisor is busy, and neither load nor steal shows it. Whoever compares two recordings can tell such a
//! machine from a dearer service by this number. A probe takes some 25 us of each 50 ms.

use std::hint::black_box;

use anyhow::Result;
use recording::Tables;
use recording::counters::{Key, speed};
use recording::tables::Counter;

use crate::clock;
use crate::collector::{Collector, Kind, Shared, SliceEnd};

/// Words of the table that a probe walks through: 64 KiB, more than a first-level cache.
const WORDS: usize = 8192;
/// Steps of arithmetic that depend on each other.
const STEPS: u64 = 12_000;

/// What is known of it before it is started.
pub const KIND: Kind =
    Kind { gap: "speed", facility: None, tables: |_| (), start: |_, _| Ok(Box::new(Speed::new())) };

/// The probe and what it has measured so far.
struct Speed {
    table: Vec<u64>,
    sum_ns: u64,
    probes: u64,
}

impl Speed {
    fn new() -> Self {
        Self { table: (0..WORDS as u64).collect(), sum_ns: 0, probes: 0 }
    }

    /// Does the work once and notes its time.
    fn measure(&mut self) {
        let before = clock::thread_cpu_ns();
        black_box(work(black_box(&mut self.table)));
        self.sum_ns += clock::thread_cpu_ns().saturating_sub(before);
        self.probes += 1;
    }

    /// Readings at the end of a slice: the sums since the start.
    fn rows(&self, t_ns: u64) -> Vec<Counter> {
        let row = |key: Key, value: u64| Counter {
            t_ns,
            source: key.source.into(),
            name: key.name.into(),
            value: value as f64,
            ..Counter::default()
        };
        vec![row(speed::WORK_NS, self.sum_ns), row(speed::WORKS, self.probes)]
    }
}

impl Collector for Speed {
    fn tick(&mut self, _: &mut Shared<'_>) -> Result<()> {
        self.measure();
        Ok(())
    }

    fn slice(&mut self, _: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        tables.extend(self.rows(end.t_ns));
        Ok(())
    }
}

/// A walk through memory, then arithmetic; neither can be done ahead or in parallel.
fn work(table: &mut [u64]) -> u64 {
    let mut x = 1_u64;
    for at in (0..table.len()).step_by(8) {
        x = x.wrapping_add(table[at]).rotate_left(7);
        table[at] = x;
    }
    for _ in 0..STEPS {
        x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (x >> 29);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_takes_time() {
        let mut speed = Speed::new();
        let mut last = 0.0;
        for probes in 1..5 {
            speed.measure();
            let rows = speed.rows(7);
            assert_eq!((rows[0].t_ns, rows[1].value), (7, f64::from(probes)));
            assert!(rows[0].value > last);
            last = rows[0].value;
        }
    }
}
