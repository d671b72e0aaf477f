// SPDX-License-Identifier: Apache-2.0
//! Whole waits: a signal interrupts one, and it goes on when the call is made again.

use std::collections::BTreeMap;

use recording::tables::Wakeup;

use super::ends::Ends;

/// Length of each of the waits that a row stands for, ns, on average: as long as the one that was picked, unless there were too few of
/// them for that. Waits are picked by their length, so that a short one may stand for a long one before it.
pub fn each_ns(row: &Wakeup) -> f64 {
    // One that does not say how many they were may stand for any number.
    let mean_ns = row.blocked_ns.checked_div(u64::from(row.waits)).unwrap_or(0);
    row.wait_ns.max(mean_ns).max(1) as f64
}

/// A wait that was picked, with all its pieces.
#[derive(Clone, Copy)]
pub struct Wait<'r> {
    /// Its last piece, whose end says what it was for.
    pub row: &'r Wakeup,
    /// Its first piece.
    pub first: &'r Wakeup,
    /// Time that it stands for, ns.
    pub ns: f64,
    /// Whether a signal ended it for good, as far as is known: the rest was not picked, or the call not made again.
    pub cut: bool,
}

impl<'r> Wait<'r> {
    /// When it began, ns after the capture's start.
    pub fn begin(&self) -> f64 {
        self.first.t_ns as f64 - self.first.wait_ns as f64
    }

    /// When it ended, likewise.
    pub fn end(&self) -> f64 {
        self.row.t_ns as f64
    }

    fn new(row: &'r Wakeup, ends: &Ends<'_>) -> Self {
        let ns = row.blocked_ns.max(row.wait_ns) as f64;
        Self { row, first: row, ns, cut: row.syscall >= 0 && ends.is_cut_short(row) }
    }

    /// Takes over from a piece that a signal ended. Where other waits lie between, it is only most likely that this one
    /// is for the same: it explains that time, but did not begin so early.
    fn take(&mut self, before: &mut Self) -> bool {
        self.ns += std::mem::take(&mut before.ns);
        let goes_on = self.row.waits <= 1;
        if goes_on {
            self.first = before.first;
        }
        goes_on
    }
}

/// Waits by thread, in the order of time.
pub fn by_thread<'r>(rows: &'r [Wakeup], ends: &Ends<'_>) -> BTreeMap<u32, Vec<Wait<'r>>> {
    let mut threads: BTreeMap<u32, Vec<&Wakeup>> = BTreeMap::new();
    for row in rows {
        threads.entry(row.tid).or_default().push(row);
    }
    let whole = |(tid, mut rows): (u32, Vec<&'r Wakeup>)| {
        rows.sort_by_key(|row| row.t_ns);
        (tid, of_thread(&rows, ends))
    };
    threads.into_iter().map(whole).collect()
}

fn of_thread<'r>(rows: &[&'r Wakeup], ends: &Ends<'_>) -> Vec<Wait<'r>> {
    let mut waits: Vec<Wait<'r>> = Vec::with_capacity(rows.len());
    for row in rows.iter().filter(|row| !ends.is_of_unknown_file(row)) {
        let mut wait = Wait::new(row, ends);
        let is_same = |before: &&mut Wait<'_>| before.cut && before.row.syscall == row.syscall;
        if waits.last_mut().filter(is_same).is_some_and(|before| wait.take(before)) {
            waits.pop();
        }
        waits.push(wait);
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_wait_that_stands_for_a_long_one() {
        let row = |wait_ns, blocked_ns, waits| Wakeup { wait_ns, blocked_ns, waits, ..Wakeup::default() };
        assert_eq!(each_ns(&row(1_000, 100_000, 100)), 1_000.0, "a hundred like it");
        assert_eq!(each_ns(&row(1_000, 300_000, 3)), 100_000.0);
        assert_eq!(each_ns(&row(300_000, 300_500, 4)), 300_000.0);
        assert_eq!(each_ns(&row(1_000, 300_000, 0)), 1_000.0, "nobody counted them");
    }
}
