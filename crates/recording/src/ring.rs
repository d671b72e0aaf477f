// SPDX-License-Identifier: Apache-2.0
//! The last slices of a capture, in memory: for what is to be told of the time before somebody asked.

use std::collections::VecDeque;
use std::ops::Range;

use anyhow::Result;

use crate::{Meta, Recording, Sink, Slice, Table, Tables, part, tables};

/// Keeps as many slices as it has room for. Of those before them it keeps what a part of a recording has of what came before it:
/// what was told once (stacks and their names, processes, settings), and how counters stood.
pub struct Ring {
    room: usize,
    meta: Meta,
    slices: VecDeque<Slice>,
    before: Tables,
}

impl Ring {
    /// With room for so many slices; at least one is kept.
    pub fn new(room: usize) -> Self {
        Self { room: room.max(1), meta: Meta::default(), slices: VecDeque::new(), before: Tables::default() }
    }

    /// From when to when its slices go, ns after the capture's start; empty before the first.
    pub fn range(&self) -> Range<u64> {
        let ends = self.slices.front().zip(self.slices.back());
        ends.map_or(0..0, |(first, last)| first.range.start..last.range.end)
    }

    /// What is in it as a recording of its own, as [`open_part`](crate::open_part) reads it where all slices went to a folder.
    ///
    /// # Errors
    /// None of memory; whoever goes through tables may fail.
    pub fn recording(&self) -> Result<Recording> {
        let mut all = Tables::default();
        for from in self.tables() {
            tables::each(&mut Adding { from, to: &mut all })?;
        }
        part::cut(&Recording { meta: self.meta.clone(), tables: all }, &self.range())
    }

    /// All that it holds, the oldest first.
    fn tables(&self) -> impl Iterator<Item = &Tables> {
        std::iter::once(&self.before).chain(self.slices.iter().map(|slice| &slice.tables))
    }

    /// Lets the oldest slice go.
    fn evict(&mut self) -> Result<()> {
        let Some(mut oldest) = self.slices.pop_front() else { return Ok(()) };
        tables::each(&mut Keeping { range: self.range(), of: &mut oldest.tables, kept: &mut self.before })?;
        part::keep_calls_of_windows(&mut self.before);
        Ok(())
    }
}

/// Adds the rows of some tables to others.
struct Adding<'a> {
    from: &'a Tables,
    to: &'a mut Tables,
}

impl tables::Visit for Adding<'_> {
    fn table<T: Table + Send + Sync>(&mut self) -> Result<()> {
        if self.from.has::<T>() {
            self.to.extend(self.from.rows::<T>().iter().cloned());
        }
        Ok(())
    }
}

/// Counts the rows of some tables.
struct Counting<'a> {
    of: &'a Tables,
    rows: u64,
}

impl tables::Visit for Counting<'_> {
    fn table<T: Table + Send + Sync>(&mut self) -> Result<()> {
        self.rows += self.of.rows::<T>().len() as u64;
        Ok(())
    }
}

/// Moves those rows to `kept` of which something is still in `range`.
struct Keeping<'a> {
    range: Range<u64>,
    of: &'a mut Tables,
    kept: &'a mut Tables,
}

impl tables::Visit for Keeping<'_> {
    fn table<T: Table + Send + Sync>(&mut self) -> Result<()> {
        if self.of.has::<T>() {
            let mut rows: Vec<T> = Vec::new();
            self.of.change(|old| rows.append(old));
            self.kept.extend(rows.into_iter().filter(|row| row.within(&self.range).is_some()));
            self.kept.change::<T>(|rows| T::condense(rows, self.range.start));
        }
        Ok(())
    }
}

impl Sink for Ring {
    fn describe(&mut self, meta: &Meta) -> Result<()> {
        self.meta = meta.clone();
        Ok(())
    }

    fn put(&mut self, slice: Slice) -> Result<()> {
        self.slices.push_back(slice);
        while self.slices.len() > self.room {
            self.evict()?;
        }
        Ok(())
    }

    fn rows(&self) -> u64 {
        let count = |of| {
            let mut counting = Counting { of, rows: 0 };
            let _ = tables::each(&mut counting); // it never fails
            counting.rows
        };
        self.tables().map(count).sum()
    }

    fn seal(&mut self, meta: &Meta) -> Result<()> {
        self.describe(meta)
    }
}

#[cfg(test)]
mod tests;
