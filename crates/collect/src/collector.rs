// SPDX-License-Identifier: Apache-2.0
//! What all collectors that hang on hooks have in common, whatever they collect: how a capture accounts for them and lets go
//! of them. What each says of itself stands with it.

use std::os::fd::BorrowedFd;

use anyhow::Result;
use recording::tables::Gap;

/// What was kept and lost of one kind of events, since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The events, for people.
    pub what: &'static str,
    /// Those that were kept.
    pub kept: u64,
    /// Those that found no room.
    pub lost: u64,
}

impl Kept {
    /// Of so many events in all, so many were lost.
    pub fn of(what: &'static str, all: u64, lost: u64) -> Self {
        Self { what, kept: all.saturating_sub(lost), lost }
    }
}

/// A collector with programs on hooks.
pub trait Collector {
    /// Its programs that run often, for their run statistics.
    fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)>;

    /// How often each of them has run.
    ///
    /// # Errors
    /// A map cannot be read.
    fn runs(&self) -> Result<Vec<(&'static str, u64)>>;

    /// What was kept and lost.
    ///
    /// # Errors
    /// A map cannot be read.
    fn losses(&self) -> Result<Vec<Kept>>;

    /// What it could not see, but for losses.
    ///
    /// # Errors
    /// A map cannot be read.
    fn gaps(&self) -> Result<Vec<Gap>> {
        Ok(Vec::new())
    }

    /// Kernel memory of its own maps, bytes.
    fn map_bytes(&self) -> u64;

    /// Takes its hooks off; maps and rings stay readable.
    fn detach(&mut self);
}
