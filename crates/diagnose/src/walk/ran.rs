// SPDX-License-Identifier: Apache-2.0
//! How long a thread ran, by the ledger: rows of waits tell nothing of one that never waited, has ended, or stands in a wait that goes on.

use recording::tables::Thread;

/// In one slice of the ledger.
pub struct Ran {
    begin: f64,
    end: f64,
    ns: f64,
}

impl Ran {
    /// So many of a row's ns.
    pub fn of(row: &Thread, ns: u64) -> Self {
        let end = row.t_ns as f64;
        Self { begin: end - row.wall_ns as f64, end, ns: ns as f64 }
    }

    /// Its end, ns.
    pub fn end(&self) -> f64 {
        self.end
    }

    /// How much of it may lie in a span, at most.
    fn most(&self, (from, until): (f64, f64)) -> f64 {
        self.ns.min(until.min(self.end) - from.max(self.begin)).max(0.0)
    }
}

/// How much of a thread's slices, in the order of their ends, may lie in a span, at most.
pub fn at_most(slices: &[Ran], span: (f64, f64)) -> f64 {
    let first = slices.partition_point(|ran| ran.end <= span.0);
    slices[first..].iter().take_while(|ran| ran.begin < span.1).map(|ran| ran.most(span)).sum()
}
