// SPDX-License-Identifier: Apache-2.0
//! What a thread did in a span of time: its waits one by one, and the rest by the scheduler's counters.

use std::collections::BTreeMap;

use recording::tables::Wakeup;

use super::Kind;
use super::ends::Ends;
use super::waits::{Wait, by_thread};

/// Waits by thread, in the order of time.
pub struct Timelines<'r> {
    threads: BTreeMap<u32, Vec<Wait<'r>>>,
}

/// A wait, cut to a span.
pub struct Part<'r> {
    /// The wait's row.
    pub row: &'r Wakeup,
    /// What of it lies in the span, ns.
    pub span: (f64, f64),
    /// Whether a signal ended it.
    pub cut: bool,
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
    pub fn new(rows: &'r [Wakeup], ends: &Ends<'_>) -> Self {
        Self { threads: by_thread(rows, ends) }
    }

    /// All waits, by thread.
    pub fn waits(&self) -> impl Iterator<Item = &Wait<'r>> {
        self.threads.values().flatten()
    }

    /// What thread `tid` did from the span's begin to its end.
    pub fn activity(&self, tid: u32, (from, until): (f64, f64)) -> Activity<'r> {
        let waits = self.threads.get(&tid).map_or(&[][..], Vec::as_slice);
        let first = waits.partition_point(|wait| wait.end() <= from);
        let mut activity = Activity::default();
        let mut at = from;
        for (nth, wait) in waits.iter().enumerate().skip(first) {
            let seen_from = wait.first.since_ns as f64;
            if nth == 0 && at < seen_from {
                activity.add(Kind::Unseen, seen_from.min(until) - at);
                at = seen_from.min(until);
            }
            let asleep = wait.begin().clamp(at, until);
            activity.add_period(wait.first, asleep - at);
            at = wait.end().clamp(asleep, until);
            if at > asleep {
                activity.waits.push(Part { row: wait.row, span: (asleep, at), cut: wait.cut });
            }
            if at >= until {
                return activity;
            }
        }
        // After its last row it has not waited for long: it is the one that ended the wait. One without any row may
        // have done anything.
        let kind = if waits.is_empty() { Kind::Unseen } else { Kind::OnCpu };
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
