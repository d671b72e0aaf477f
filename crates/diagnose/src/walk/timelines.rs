// SPDX-License-Identifier: Apache-2.0
//! What a thread did in a span of time: its waits one by one, and the rest by the scheduler's counters.

use std::collections::BTreeMap;

use recording::tables::Wakeup;

use super::{Kind, begin};

/// Rows by thread, in the order of time.
pub struct Timelines<'r> {
    threads: BTreeMap<u32, Vec<&'r Wakeup>>,
}

/// A wait, cut to a span.
pub struct Part<'r> {
    /// The wait's row.
    pub row: &'r Wakeup,
    /// What of it lies in the span, ns.
    pub span: (f64, f64),
}

impl Part<'_> {
    /// How much that is, ns.
    pub fn length(&self) -> f64 {
        self.span.1 - self.span.0
    }
}

/// What a thread did in a span; waits and active time add up to it.
#[derive(Default)]
pub struct Activity<'r> {
    /// Waits that were picked.
    pub waits: Vec<Part<'r>>,
    /// The rest, ns.
    pub active: BTreeMap<Kind, f64>,
}

impl<'r> Timelines<'r> {
    pub fn new(rows: &'r [Wakeup]) -> Self {
        let mut threads: BTreeMap<u32, Vec<&Wakeup>> = BTreeMap::new();
        for row in rows {
            threads.entry(row.tid).or_default().push(row);
        }
        threads.values_mut().for_each(|rows| rows.sort_by_key(|row| row.t_ns));
        Self { threads }
    }

    /// What thread `tid` did from the span's begin to its end.
    pub fn activity(&self, tid: u32, (from, until): (f64, f64)) -> Activity<'r> {
        let rows = self.threads.get(&tid).map_or(&[][..], Vec::as_slice);
        let first = rows.partition_point(|row| row.t_ns as f64 <= from);
        let mut activity = Activity::default();
        let mut at = from;
        for row in &rows[first..] {
            let seen_from = row.since_ns as f64;
            if at < seen_from && rows.first().is_some_and(|r| std::ptr::eq(*r, *row)) {
                activity.add(Kind::Unseen, seen_from.min(until) - at);
                at = seen_from.min(until);
            }
            let asleep = begin(row).clamp(at, until);
            activity.add_period(row, asleep - at);
            at = (row.t_ns as f64).clamp(asleep, until);
            if at > asleep {
                activity.waits.push(Part { row, span: (asleep, at) });
            }
            if at >= until {
                return activity;
            }
        }
        // After its last row it has not waited for long: it is the one that ended the wait. One without any row may
        // have done anything.
        let kind = if rows.is_empty() { Kind::Unseen } else { Kind::OnCpu };
        activity.add(kind, until - at);
        activity
    }
}

impl Activity<'_> {
    fn add(&mut self, kind: Kind, ns: f64) {
        if ns > 0.0 {
            *self.active.entry(kind).or_default() += ns;
        }
    }

    /// Adds time between two rows outside the picked wait, split as the counters of the later row say.
    fn add_period(&mut self, row: &Wakeup, ns: f64) {
        let short = row.blocked_ns.saturating_sub(row.wait_ns) as f64;
        let parts = [(Kind::OnCpu, row.cpu_ns as f64), (Kind::RunQueue, row.run_queue_ns as f64), (Kind::Short, short)];
        let sum: f64 = parts.iter().map(|(_, ns)| ns).sum();
        if sum <= 0.0 {
            return self.add(Kind::OnCpu, ns);
        }
        for (kind, part) in parts {
            self.add(kind, ns * part / sum);
        }
    }
}
