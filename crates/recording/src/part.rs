// SPDX-License-Identifier: Apache-2.0
//! A part of a recording, as a recording of its own: whole slices, and whatever happened in them. What was told once, of the
//! whole recording, stays as it is.
//!
//! It is taken of a recording in memory, or of one on disk, of which no more is read than that.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tables::{self, Call, CallLatency, CallWindow, Thread};
use crate::{Meta, Recording, Table, Tables, read, slices};

/// From when to when, ns after the capture's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

impl Recording {
    /// A part of it, to the nearest slice of its ledger, and where it begins, ns after the capture's start.
    ///
    /// # Errors
    /// No slice lies in it; the sentence says how long the recording is.
    pub fn part(&self, part: Part) -> Result<(Recording, u64), NoPart> {
        // The rows of a slice stand together, and there may be millions.
        let ends = self.rows::<Thread>().chunk_by(|a, b| a.t_ns == b.t_ns).map(|slice| slice[0].t_ns);
        let range = snapped(ends.collect(), part)?;
        let part = cut(self, &range).map_err(|e| NoPart(format!("{e:#}")))?;
        Ok((part, range.start))
    }
}

/// What of a recording lies in `range`.
pub(crate) fn cut(whole: &Recording, range: &Range<u64>) -> Result<Recording> {
    let mut cutting = Cutting { whole, range: range.clone(), tables: Tables::default() };
    tables::each(&mut cutting)?;
    Ok(within(&whole.meta, cutting.tables, range))
}

/// Reads a part of the recording in `dir`, to the nearest slice of its ledger; with where it begins, ns after the capture's
/// start.
///
/// # Errors
/// As [`open`](crate::open), and if no slice lies in it.
pub fn open_part(dir: &Path, part: Part) -> Result<(Recording, u64)> {
    let meta = read::checked(dir)?;
    let mut ends = BTreeSet::new();
    for rows in slices::<SliceEnd>(dir, 0..u64::MAX)? {
        ends.extend(rows?.iter().map(|row| row.t_ns));
        ensure!(ends.len() <= read::MAX_ROWS, "its thread ledger has more slices than any recording");
    }
    let range = snapped(ends, part)?;
    let mut reading = Reading { dir, range: range.clone(), tables: Tables::default(), text: 0, bytes: 0 };
    tables::each(&mut reading)?;
    Ok((within(&meta, reading.tables, &range), range.start))
}

/// The end of a slice, as the thread ledger tells it.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct SliceEnd {
    t_ns: u64,
}

impl Table for SliceEnd {
    const NAME: &'static str = Thread::NAME;
}

/// Whole slices whose middle is in the part, by the ends of all.
fn snapped(ends: BTreeSet<u64>, part: Part) -> Result<Range<u64>, NoPart> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let inside = |(from, to): &(u64, u64)| {
        let middle = from + (to - from) / 2;
        (part.from_ns..part.to_ns).contains(&middle)
    };
    let mut slices = starts.zip(ends.iter().copied()).filter(|(from, to)| from < to).filter(inside);
    let first = slices.next();
    let Some((from, first_ends)) = first else {
        let seconds = |ns: u64| ns as f64 / 1e9;
        return Err(NoPart(format!(
            "there is nothing between {:.1} s and {:.1} s: the recording is {:.1} s long",
            seconds(part.from_ns),
            seconds(part.to_ns),
            seconds(ends.last().copied().unwrap_or(0))
        )));
    };
    Ok(from..slices.last().map_or(first_ends, |(_, to)| to))
}

fn within(whole: &Meta, mut tables: Tables, range: &Range<u64>) -> Recording {
    keep_calls_of_windows(&mut tables);
    Recording { meta: Meta { length_ns: range.end - range.start, ..whole.clone() }, tables }
}

/// Leaves those calls of which the window is there.
pub(crate) fn keep_calls_of_windows(tables: &mut Tables) {
    let windows: BTreeSet<u32> = tables.rows::<CallWindow>().iter().map(|window| window.id).collect();
    tables.retain(|row: &Call| windows.contains(&row.window));
    tables.retain(|row: &CallLatency| windows.contains(&row.window));
}

/// Takes a part of what is in memory.
struct Cutting<'r> {
    whole: &'r Recording,
    range: Range<u64>,
    tables: Tables,
}

impl tables::Visit for Cutting<'_> {
    fn table<T: Table + Send + Sync>(&mut self) -> Result<()> {
        if self.whole.tables.has::<T>() {
            let mut rows = self.whole.rows::<T>().iter().filter_map(|row| row.within(&self.range)).collect();
            T::condense(&mut rows, 0);
            self.tables.extend(rows);
        }
        Ok(())
    }
}

/// Reads a part of what is on disk.
struct Reading<'a> {
    dir: &'a Path,
    range: Range<u64>,
    tables: Tables,
    /// Bytes of text so far.
    text: usize,
    /// Bytes of rows so far, beside it.
    bytes: usize,
}

impl tables::Visit for Reading<'_> {
    fn table<T: Table + Send + Sync>(&mut self) -> Result<()> {
        let mut batches = slices::<T>(self.dir, T::looked_through(&self.range))?;
        if !batches.is_there() {
            return Ok(());
        }
        let (mut kept, text, others) = (Vec::new(), self.text, self.bytes);
        while let Some(rows) = batches.next() {
            kept.extend(rows?.iter().filter_map(|row| row.within(&self.range)));
            let given = batches.given();
            let size = read::Size { text: text.saturating_add(given.text), ..given };
            self.text = size.text;
            let too_large = || format!("table `{}` of `{}` is too large", T::NAME, self.dir.display());
            size.check().with_context(too_large)?;
            self.bytes = size.with_others::<T>(others, kept.len()).with_context(too_large)?;
        }
        T::condense(&mut kept, 0);
        self.tables.extend(kept);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
