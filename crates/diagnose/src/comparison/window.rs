// SPDX-License-Identifier: Apache-2.0
//! A part of a recording, as a recording of its own.
//!
//! What has a time is cut to whole slices of the thread ledger. Tables that hold one total for the whole
//! capture (waits by kind, who was in the way, losses, cost) cannot be cut and are left out.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::{
    Call, CallExample, CallLatency, CallWindow, Counter, Frame, Gap, Process, Sample, Setting, Stack, Thread,
};
use recording::{Meta, Recording, Tables};

use super::Refused;

/// From when to when, ns after the capture's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
}

/// The part of `recording` that lies in `window`, to the nearest slice of its ledger.
///
/// # Errors
/// No slice lies in it; the sentence says how long the recording is.
pub fn cut(recording: &Recording, window: Window) -> Result<Recording, Refused> {
    let Some((from, to)) = snapped(recording, window) else {
        let ends = recording.rows::<Thread>().iter().map(|t| t.t_ns).max().unwrap_or(0);
        return Err(Refused(format!(
            "there is nothing between {:.1} s and {:.1} s: the recording is {:.1} s long",
            window.from_ns as f64 / 1e9,
            window.to_ns as f64 / 1e9,
            ends as f64 / 1e9
        )));
    };
    let inside = |t_ns: u64| (from..to).contains(&t_ns);
    let mut tables = Tables::default();
    let keep_time = |t_ns: &mut u64| *t_ns -= from;
    tables.extend(recording.rows::<Thread>().iter().filter(|t| t.t_ns > from && t.t_ns <= to).cloned().map(|mut t| {
        keep_time(&mut t.t_ns);
        t
    }));
    tables.extend(recording.rows::<Sample>().iter().filter(|s| inside(s.t_ns)).cloned().map(|mut s| {
        keep_time(&mut s.t_ns);
        s
    }));
    tables.extend(counters(recording.rows::<Counter>(), from, to));
    calls(recording, &mut tables, from, to);
    tables.extend(recording.rows::<Process>().iter().cloned());
    tables.extend(recording.rows::<Stack>().iter().cloned());
    tables.extend(recording.rows::<Frame>().iter().cloned());
    if recording.tables.has::<Setting>() {
        tables.extend(recording.rows::<Setting>().iter().cloned());
    }
    tables.extend(recording.rows::<Gap>().iter().cloned());
    Ok(Recording { meta: Meta { length_ns: to - from, ..recording.meta.clone() }, tables })
}

/// Whole slices whose middle is in the window.
fn snapped(recording: &Recording, window: Window) -> Option<(u64, u64)> {
    let ends: BTreeSet<u64> = recording.rows::<Thread>().iter().map(|t| t.t_ns).collect();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let inside = |(from, to): &(u64, u64)| {
        let middle = from + (to - from) / 2;
        (window.from_ns..window.to_ns).contains(&middle)
    };
    let slices: Vec<(u64, u64)> =
        starts.zip(ends.iter().copied()).filter(|(from, to)| from < to).filter(inside).collect();
    Some((slices.first()?.0, slices.last()?.1))
}

/// Readings of the window. A row is written only if the value changed, so the window begins with the last one
/// before it.
fn counters(rows: &[Counter], from: u64, to: u64) -> Vec<Counter> {
    let mut before: BTreeMap<(&str, &str, &str), &Counter> = BTreeMap::new();
    for row in rows.iter().filter(|r| r.t_ns <= from) {
        let last = before.entry((&row.source, &row.entity, &row.name)).or_insert(row);
        if row.t_ns >= last.t_ns {
            *last = row;
        }
    }
    let first = before.into_values().map(|row| Counter { t_ns: 0, ..row.clone() });
    let rest = rows.iter().filter(|r| r.t_ns > from && r.t_ns <= to);
    first.chain(rest.map(|row| Counter { t_ns: row.t_ns - from, ..row.clone() })).collect()
}

fn calls(recording: &Recording, tables: &mut Tables, from: u64, to: u64) {
    let inside = |t_ns: u64| (from..to).contains(&t_ns);
    let windows: Vec<CallWindow> = recording.rows::<CallWindow>().iter().filter(|w| inside(w.t_ns)).cloned().collect();
    let ids: BTreeSet<u32> = windows.iter().map(|w| w.id).collect();
    tables.extend(recording.rows::<Call>().iter().filter(|c| ids.contains(&c.window)).cloned());
    tables.extend(recording.rows::<CallLatency>().iter().filter(|c| ids.contains(&c.window)).cloned());
    tables.extend(recording.rows::<CallExample>().iter().filter(|c| inside(c.t_ns)).cloned());
    tables.extend(windows.into_iter().map(|w| CallWindow { t_ns: w.t_ns - from, ..w }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    const TEXT: &str = "meta length_ns=4e9
        thread t_ns=1e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=1
        thread t_ns=2e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=2
        thread t_ns=3e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=4
        thread t_ns=4e9 pid=1 tid=1 wall_ns=1e9 cpu_ns=8
        sample t_ns=5e8 pid=1\nsample t_ns=25e8 pid=2
        counter t_ns=0 source=s name=n value=10
        counter t_ns=1e9 source=s name=n value=12
        counter t_ns=3e9 source=s name=n value=15
        counter t_ns=4e9 source=s name=n value=99
        call_window id=1 t_ns=5e8\ncall_window id=2 t_ns=21e8
        call window=1 count=1\ncall window=2 count=2
        wait total_ns=5";

    #[test]
    fn whole_slices_with_the_counters_as_they_stood() {
        let whole = parse(TEXT).unwrap();
        // 1.4 s is nearer to the slice that begins at 1 s than to the one at 2 s.
        let part = cut(&whole, Window { from_ns: 1_400_000_000, to_ns: 3_000_000_000 }).unwrap();
        assert_eq!(
            part.rows::<Thread>().iter().map(|t| (t.t_ns, t.cpu_ns)).collect::<Vec<_>>(),
            [(1_000_000_000, 2), (2_000_000_000, 4)]
        );
        assert_eq!(part.meta.length_ns, 2_000_000_000);
        assert_eq!(part.rows::<Sample>().iter().map(|s| (s.t_ns, s.pid)).collect::<Vec<_>>(), [(1_500_000_000, 2)]);
        let values: Vec<(u64, f64)> = part.rows::<Counter>().iter().map(|c| (c.t_ns, c.value)).collect();
        assert_eq!(values, [(0, 12.0), (2_000_000_000, 15.0)]);
        assert_eq!(part.rows::<Call>()[0].count, 2);
        assert!(!part.tables.has::<recording::tables::Wait>());
    }

    #[test]
    fn a_window_beyond_the_end_is_refused() {
        let whole = parse(TEXT).unwrap();
        let refused = cut(&whole, Window { from_ns: 9_000_000_000, to_ns: 12_000_000_000 }).err().unwrap();
        assert!(refused.0.contains("9.0 s and 12.0 s") && refused.0.contains("4.0 s long"), "{}", refused.0);
    }
}
