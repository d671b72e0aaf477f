// SPDX-License-Identifier: Apache-2.0
//! How fast the machine is just now: the CPU time that a fixed piece of work takes.
//!
//! The same service costs more CPU time while a hyperthread's sibling, a shared cache or another guest of the
//! hypervisor is busy, and neither load nor steal shows it. Whoever compares two recordings can tell such a
//! machine from a dearer service by this number. A probe takes some 50 us of each 50 ms.

use std::hint::black_box;

use recording::tables::Counter;

use crate::clock;

/// Words of the table that a probe walks through: 64 KiB, more than a first-level cache.
const WORDS: usize = 8192;
/// Steps of arithmetic that depend on each other.
const STEPS: u64 = 12_000;

/// The probe and what it has measured since the last slice.
pub struct Speed {
    table: Vec<u64>,
    taken_ns: Vec<u64>,
    sum_ns: u64,
    probes: u64,
}

impl Speed {
    pub fn new() -> Self {
        Self { table: (0..WORDS as u64).collect(), taken_ns: Vec::new(), sum_ns: 0, probes: 0 }
    }

    /// Does the work once and notes its time.
    pub fn probe(&mut self) {
        let before = clock::thread_cpu_ns();
        black_box(work(black_box(&mut self.table)));
        let taken = clock::thread_cpu_ns().saturating_sub(before);
        self.taken_ns.push(taken);
        self.sum_ns += taken;
        self.probes += 1;
    }

    /// Readings at the end of a slice: the sums so far, and the median of the slice.
    pub fn rows(&mut self, t_ns: u64) -> Vec<Counter> {
        self.taken_ns.sort_unstable();
        let median = self.taken_ns.get(self.taken_ns.len() / 2).copied();
        self.taken_ns.clear();
        let row = |name: &str, value: u64| Counter {
            t_ns,
            source: "wakewalk/speed".into(),
            name: name.into(),
            value: value as f64,
            ..Counter::default()
        };
        let mut rows = vec![row("work_ns", self.sum_ns), row("works", self.probes)];
        rows.extend(median.map(|median| row("median_ns", median)));
        rows
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
    fn every_probe_takes_time_and_slices_have_a_median_of_their_own() {
        let mut speed = Speed::new();
        (0..5).for_each(|_| speed.probe());
        let first = speed.rows(7);
        let value = |rows: &[Counter], name: &str| rows.iter().find(|r| r.name == name).map(|r| r.value);
        assert_eq!((first[0].t_ns, value(&first, "works")), (7, Some(5.0)));
        assert!(value(&first, "work_ns").unwrap() >= value(&first, "median_ns").unwrap());
        assert!(value(&first, "median_ns").unwrap() > 0.0);
        assert_eq!(value(&speed.rows(8), "median_ns"), None, "nothing was probed since");
    }
}
