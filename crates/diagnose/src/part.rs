// SPDX-License-Identifier: Apache-2.0
//! A part of a recording, as a recording of its own: whole slices, and whatever happened in them.
//!
//! What is told once, of the whole capture, stays as it is where it says what nobody could see, and is left out where it
//! would be too much (the cost).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use recording::tables::{
    Burst, Call, CallExample, CallLatency, CallWindow, Connection, Counter, Exchange, ExchangeWindow, Frame, Gap,
    Label, LoadLatency, LoadSecond, Loss, Neighbour, Process, Request, Retransmit, Sample, Setting, Stack, Thread,
    Wait, WaitStack, Wakeup,
};
use recording::{Meta, Recording, Table, Tables};

/// From when to when, ns after the capture's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Start.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
}

/// Why there is no such part, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPart(String);

impl fmt::Display for NoPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoPart {}

/// The part of `recording`, to the nearest slice of its ledger, and where it begins, ns after the capture's start.
///
/// # Errors
/// No slice lies in it; the sentence says how long the recording is.
pub fn cut(recording: &Recording, part: Part) -> Result<(Recording, u64), NoPart> {
    let Some((from, to)) = snapped(recording, part) else {
        let ends = recording.rows::<Thread>().iter().map(|t| t.t_ns).max().unwrap_or(0);
        return Err(NoPart(format!(
            "there is nothing between {:.1} s and {:.1} s: the recording is {:.1} s long",
            part.from_ns as f64 / 1e9,
            part.to_ns as f64 / 1e9,
            ends as f64 / 1e9
        )));
    };
    let mut cutter = Cutter { whole: recording, tables: Tables::default(), from, to };
    cutter.slices(|row: &mut Thread| &mut row.t_ns);
    cutter.slices(|row: &mut Wait| &mut row.t_ns);
    cutter.slices(|row: &mut Neighbour| &mut row.t_ns);
    cutter.slices(|row: &mut Connection| &mut row.t_ns);
    cutter.slices(|row: &mut Exchange| &mut row.t_ns);
    cutter.slices(|row: &mut ExchangeWindow| &mut row.t_ns);
    cutter.slices(|row: &mut Label| &mut row.t_ns);
    cutter.slices(|row: &mut Retransmit| &mut row.t_ns);
    cutter.slices(|row: &mut Burst| &mut row.t_ns);
    cutter.slices(|row: &mut Loss| &mut row.t_ns);
    cutter.slices(|row: &mut LoadSecond| &mut row.t_ns);
    cutter.slices(|row: &mut LoadLatency| &mut row.t_ns);
    cutter.moments(|row: &mut Sample| &mut row.t_ns);
    cutter.moments(|row: &mut WaitStack| &mut row.t_ns);
    cutter.wakeups();
    cutter.requests();
    cutter.counters();
    cutter.calls();
    cutter.whole::<Process>();
    cutter.whole::<Stack>();
    cutter.whole::<Frame>();
    cutter.whole::<Setting>();
    cutter.whole::<Gap>();
    let meta = Meta { length_ns: to - from, ..recording.meta.clone() };
    Ok((Recording { meta, tables: cutter.tables }, from))
}

/// Takes rows of the slices that end after `from` and up to `to`.
struct Cutter<'r> {
    whole: &'r Recording,
    tables: Tables,
    from: u64,
    to: u64,
}

impl Cutter<'_> {
    /// All rows of a table. One that the recording does not have the part does not have either.
    fn whole<T: Table + Clone + Send + Sync>(&mut self) {
        self.kept(|_, row: &T| Some(row.clone()));
    }

    /// Rows that are of a slice, by its end.
    fn slices<T: Table + Clone + Send + Sync>(&mut self, time: fn(&mut T) -> &mut u64) {
        self.kept(|cutter, row: &T| {
            let mut row = row.clone();
            let t_ns = time(&mut row);
            let inside = *t_ns > cutter.from && *t_ns <= cutter.to;
            *t_ns = t_ns.saturating_sub(cutter.from);
            inside.then_some(row)
        });
    }

    /// Rows that are of a moment.
    fn moments<T: Table + Clone + Send + Sync>(&mut self, time: fn(&mut T) -> &mut u64) {
        self.kept(|cutter, row: &T| {
            let mut row = row.clone();
            let t_ns = time(&mut row);
            let inside = (cutter.from..cutter.to).contains(t_ns);
            *t_ns = t_ns.saturating_sub(cutter.from);
            inside.then_some(row)
        });
    }

    fn kept<T: Table + Clone + Send + Sync>(&mut self, keep: impl Fn(&Self, &T) -> Option<T>) {
        if self.whole.tables.has::<T>() {
            let rows: Vec<T> = self.whole.rows::<T>().iter().filter_map(|row| keep(self, row)).collect();
            self.tables.extend(rows);
        }
    }

    /// What began earlier counts from the part's start.
    fn requests(&mut self) {
        self.kept(|cutter, row: &Request| {
            (cutter.from..cutter.to).contains(&row.t_ns).then(|| Request {
                t_ns: row.t_ns - cutter.from,
                began_ns: row.began_ns.saturating_sub(cutter.from),
                read_ns: row.read_ns.saturating_sub(cutter.from),
                ..row.clone()
            })
        });
    }

    /// A wait that began earlier counts from the part's start.
    fn wakeups(&mut self) {
        self.kept(|cutter, row: &Wakeup| {
            let earlier = cutter.from.saturating_sub(row.since_ns);
            (cutter.from..cutter.to).contains(&row.t_ns).then(|| Wakeup {
                t_ns: row.t_ns - cutter.from,
                since_ns: row.since_ns.saturating_sub(cutter.from),
                wait_ns: row.wait_ns.saturating_sub(earlier),
                blocked_ns: row.blocked_ns.saturating_sub(earlier),
                ..row.clone()
            })
        });
    }

    /// A row is written only if the value changed, so the part begins with the last one before it.
    fn counters(&mut self) {
        let rows = self.whole.rows::<Counter>();
        let mut before: BTreeMap<(&str, &str, &str), &Counter> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.t_ns <= self.from) {
            let last = before.entry((&row.source, &row.entity, &row.name)).or_insert(row);
            if row.t_ns >= last.t_ns {
                *last = row;
            }
        }
        let first = before.into_values().map(|row| Counter { t_ns: 0, ..row.clone() });
        let rest = rows.iter().filter(|row| row.t_ns > self.from && row.t_ns <= self.to);
        let kept: Vec<Counter> =
            first.chain(rest.map(|row| Counter { t_ns: row.t_ns - self.from, ..row.clone() })).collect();
        self.tables.extend(kept);
    }

    fn calls(&mut self) {
        self.moments(|row: &mut CallWindow| &mut row.t_ns);
        let ids: BTreeSet<u32> = self.tables.rows::<CallWindow>().iter().map(|window| window.id).collect();
        self.kept(|_, row: &Call| ids.contains(&row.window).then(|| row.clone()));
        self.kept(|_, row: &CallLatency| ids.contains(&row.window).then(|| row.clone()));
        self.moments(|row: &mut CallExample| &mut row.t_ns);
    }
}

/// Whole slices whose middle is in the part.
fn snapped(recording: &Recording, part: Part) -> Option<(u64, u64)> {
    let ends: BTreeSet<u64> = recording.rows::<Thread>().iter().map(|t| t.t_ns).collect();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let inside = |(from, to): &(u64, u64)| {
        let middle = from + (to - from) / 2;
        (part.from_ns..part.to_ns).contains(&middle)
    };
    let slices: Vec<(u64, u64)> =
        starts.zip(ends.iter().copied()).filter(|(from, to)| from < to).filter(inside).collect();
    Some((slices.first()?.0, slices.last()?.1))
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
        wait t_ns=1e9 total_ns=5\nwait t_ns=3e9 total_ns=7
        neighbour t_ns=2e9 pid=3 samples=1\nneighbour t_ns=4e9 pid=3 samples=2
        wakeup t_ns=15e8 since_ns=5e8 wait_ns=1e9 blocked_ns=9e8\nwakeup t_ns=35e8 since_ns=34e8
        loss t_ns=2e9 what=waits count=3 kept=1\nloss t_ns=4e9 what=waits count=9
        cost what=user cpu_ns=7";

    /// A table that `cut` does not know would be lost from parts without a word.
    #[test]
    fn no_table_is_forgotten() {
        let all = recording::markdown();
        let names: BTreeSet<&str> = all.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let text: String = names.iter().map(|name| format!("{name}\n")).collect();
        let (part, _) =
            cut(&parse(&format!("{text}thread t_ns=1e9")).unwrap(), Part { from_ns: 0, to_ns: 2_000_000_000 }).unwrap();
        let left: BTreeSet<&str> = part.tables.names().collect();
        // What a part cost is not known.
        assert_eq!(names.difference(&left).collect::<Vec<_>>(), [&"cost"]);
    }

    #[test]
    fn whole_slices_with_the_counters_as_they_stood() {
        let whole = parse(TEXT).unwrap();
        // 1.4 s is nearer to the slice that begins at 1 s than to the one at 2 s.
        let (part, from) = cut(&whole, Part { from_ns: 1_400_000_000, to_ns: 3_000_000_000 }).unwrap();
        assert_eq!(from, 1_000_000_000);
        assert_eq!(
            part.rows::<Thread>().iter().map(|t| (t.t_ns, t.cpu_ns)).collect::<Vec<_>>(),
            [(1_000_000_000, 2), (2_000_000_000, 4)]
        );
        assert_eq!(part.meta.length_ns, 2_000_000_000);
        assert_eq!(part.rows::<Sample>().iter().map(|s| (s.t_ns, s.pid)).collect::<Vec<_>>(), [(1_500_000_000, 2)]);
        let values: Vec<(u64, f64)> = part.rows::<Counter>().iter().map(|c| (c.t_ns, c.value)).collect();
        assert_eq!(values, [(0, 12.0), (2_000_000_000, 15.0)]);
        assert_eq!(part.rows::<Call>()[0].count, 2);
        assert_eq!(part.rows::<Wait>().iter().map(|w| (w.t_ns, w.total_ns)).collect::<Vec<_>>(), [(2_000_000_000, 7)]);
        assert_eq!(part.rows::<Neighbour>().iter().map(|n| n.samples).sum::<u64>(), 1);
        let wakeups: Vec<_> =
            part.rows::<Wakeup>().iter().map(|w| (w.t_ns, w.since_ns, w.wait_ns, w.blocked_ns)).collect();
        assert_eq!(wakeups, [(500_000_000, 0, 500_000_000, 400_000_000)], "of a wait, what lies in the part");
        assert!(part.rows::<Loss>().len() == 1 && !part.tables.has::<recording::tables::Cost>());
        assert!(!part.tables.has::<Connection>(), "what was not recorded is not there either");
    }

    #[test]
    fn a_part_beyond_the_end_is_refused() {
        let whole = parse(TEXT).unwrap();
        let refused = cut(&whole, Part { from_ns: 9_000_000_000, to_ns: 12_000_000_000 }).err().unwrap();
        assert!(refused.0.contains("9.0 s and 12.0 s") && refused.0.contains("4.0 s long"), "{}", refused.0);
    }
}
