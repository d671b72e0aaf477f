// SPDX-License-Identifier: Apache-2.0
//! Whether clients went on asking until the end of the capture, and how their connections stood when they did not.

use std::collections::BTreeMap;

use recording::tables;

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::statistics::{ratio, share};

/// The end of the capture, from which on no client asked anything; without one, `ns` is 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// When the silence began, ns after the capture's start.
    pub from_ns: f64,
    /// How long exchanges were followed in it, ns.
    pub ns: f64,
    /// Requests a second before it, in slices that are whole.
    pub rate: f64,
    /// Of the mean of those slices, the least that one of them had: 1 = they are steady.
    pub steady: f64,
    /// How many those are.
    pub slices: usize,
    /// For how long exchanges were followed in them, ns.
    pub before_ns: f64,
    /// Connections of clients before it, on average.
    pub open_before: f64,
    /// The same in it.
    pub open: f64,
    /// Of those, with bytes that came and were not read.
    pub unread: f64,
    /// Of those, with an answer owed for 10 ms or longer.
    pub late: f64,
    /// Before it, bytes unread or an answer owed, whichever was more: as in long polls, which stand all the time.
    pub owed_before: f64,
    /// Segments with data that came in it.
    pub segments: f64,
    /// Connections that stood in accept queues in it.
    pub queued: f64,
}

impl Traffic {
    /// Requests that would have come in the silence.
    pub fn expected(&self) -> f64 {
        self.rate * self.ns / 1e9
    }
}

/// Connections that clients made, in one slice or several; sums over looks.
#[derive(Clone, Copy, Default)]
struct Looks {
    looks: f64,
    open: f64,
    unread: f64,
    late: f64,
    segments: f64,
    queued: f64,
}

impl Fact for Traffic {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let mut windows: Vec<(u64, f64, f64)> = followed(case);
        windows.sort_by_key(|window| window.0);
        let last = windows.iter().rposition(|(.., began)| *began > 0.0);
        let Some(last) = last else {
            return Err(Gap::not_recorded("exchange", "no client was seen to ask it for anything"));
        };
        let (whole, silent) = (&windows[..last], &windows[last + 1..]);
        let [asked, whole_ns] = [2, 1].map(|which| sum(whole, which));
        let rate = ratio(asked * 1e9, whole_ns);
        let each = whole.iter().map(|(_, ns, began)| ratio(began * 1e9, *ns));
        let least = each.fold(f64::INFINITY, f64::min);
        let from_ns = windows[last].0;
        let (before, after) = (looks(case, |t_ns| t_ns <= from_ns), looks(case, |t_ns| t_ns > from_ns));
        Ok(Self {
            from_ns: from_ns as f64,
            ns: sum(silent, 1),
            rate,
            steady: share(least, rate),
            slices: whole.len(),
            before_ns: whole_ns,
            open_before: ratio(before.open, before.looks),
            open: ratio(after.open, after.looks),
            unread: ratio(after.unread, after.looks),
            late: ratio(after.late, after.looks),
            owed_before: ratio(before.unread.max(before.late), before.looks),
            segments: after.segments,
            queued: ratio(after.queued, after.looks),
        })
    }
}

/// Times in which exchanges were followed: end, ns, length, ns, and how many clients began.
pub fn followed(case: &Case) -> Vec<(u64, f64, f64)> {
    let mut began: BTreeMap<u64, f64> = BTreeMap::new();
    for row in case.recording.rows::<tables::Exchange>().iter().filter(|row| row.is_accepted()) {
        *began.entry(row.t_ns).or_default() += row.began as f64;
    }
    let windows = case.recording.rows::<tables::ExchangeWindow>().iter();
    windows.map(|w| (w.t_ns, w.length_ns as f64, began.get(&w.t_ns).copied().unwrap_or(0.0))).collect()
}

fn sum(windows: &[(u64, f64, f64)], which: usize) -> f64 {
    windows.iter().map(|window| if which == 1 { window.1 } else { window.2 }).sum()
}

fn looks(case: &Case, is_in: impl Fn(u64) -> bool) -> Looks {
    let mut slices: BTreeMap<u64, u64> = BTreeMap::new();
    let mut all = Looks::default();
    for row in case.recording.rows::<tables::Connection>().iter().filter(|row| is_in(row.t_ns)) {
        slices.insert(row.t_ns, row.looks);
        if row.is_accepted() {
            all.open += row.open as f64;
            all.unread += row.unread as f64;
            all.late += row.late as f64;
            all.segments += row.segments as f64;
            all.queued += row.queued as f64;
        }
    }
    Looks { looks: slices.values().map(|looks| *looks as f64).sum(), ..all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn where_the_silence_begins() {
        let mut text = "meta length_ns=5e9\n".to_string();
        for (slice, began) in [(1, 90), (2, 110), (3, 20), (4, 0), (5, 0)] {
            text += &format!("exchange_window t_ns={slice}e9 length_ns=1e9\n");
            if began > 0 {
                text +=
                    &format!("exchange t_ns={slice}e9 role=accepted port=80 stage=response count=9 began={began}\n");
            }
            text += &format!(
                "connection t_ns={slice}e9 role=accepted port=80 looks=10 open=80 unread={} segments={began}\n",
                slice / 4
            );
        }
        let t = Case::new(&parse(&text).unwrap()).fact::<Traffic>().unwrap();
        assert_eq!((t.from_ns, t.ns, t.rate, t.steady, t.expected()), (3e9, 2e9, 100.0, 0.9, 200.0));
        assert_eq!((t.open_before, t.open, t.unread, t.segments), (8.0, 8.0, 0.1, 0.0));
        assert!(Case::new(&parse("").unwrap()).fact::<Traffic>().is_err());
    }
}
