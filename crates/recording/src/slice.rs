// SPDX-License-Identifier: Apache-2.0
//! The unit of a recording: what was seen in a second or so, whole in itself. A capture is a sequence of slices, and where they go
//! is not its business.

use std::ops::Range;

use anyhow::Result;

use crate::{Meta, Tables};

/// What was seen between two moments.
#[derive(Default)]
pub struct Slice {
    /// From when to when, ns after the capture's start; empty = what is known when it starts.
    pub range: Range<u64>,
    /// The rows. Ids in them are those of the whole recording.
    pub tables: Tables,
}

/// Where the slices of a capture go: to a folder ([`Writer`](crate::Writer)), or to memory ([`Ring`](crate::Ring)).
pub trait Sink {
    /// Replaces the recording's description.
    ///
    /// # Errors
    /// The disk is full or the folder has gone.
    fn describe(&mut self, meta: &Meta) -> Result<()>;

    /// Takes the next slice. Where the place outlives this process, so does a slice that was put, however the process ends.
    ///
    /// # Errors
    /// The disk is full or the folder has gone.
    fn put(&mut self, slice: Slice) -> Result<()>;

    /// How many rows it holds, of all tables together: whoever judges the recording reads all of them.
    fn rows(&self) -> u64;

    /// No slice comes any more.
    ///
    /// # Errors
    /// The disk is full or the folder has gone.
    fn seal(&mut self, meta: &Meta) -> Result<()>;
}
