// SPDX-License-Identifier: Apache-2.0
//! The recording: a folder with `meta.json` and one file of rows for each table.
//!
//! It is the hinge of wakewalk: a collector fills it, everything after it is a pure function of it.
//! While a capture runs, a table is an Arrow IPC stream (a torn stream loses its last batch only);
//! sealing turns each stream into Parquet by rename. Readers take either.
//! This crate knows rows and files; it knows nothing of kernels, rules or output.

pub mod counters;
mod disk;
mod files;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod meta;
mod part;
mod read;
mod ring;
pub mod role;
mod schema;
mod slice;
mod slices;
mod store;
pub mod tables;
pub mod text;
mod untrusted;
mod write;

pub use files::remove;
pub use meta::Meta;
pub use part::{NoPart, Part, open_part};
pub use read::{Recording, describe, open};
pub use ring::Ring;
pub use schema::markdown;
pub use slice::{Sink, Slice};
pub use slices::{Slices, slices};
pub use store::Tables;
pub use tables::Table;
pub use write::Writer;

/// Version of the layout on disk; a reader refuses a newer one with a sentence.
pub const SCHEMA: u32 = 1;
