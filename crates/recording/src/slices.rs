// SPDX-License-Identifier: Apache-2.0
//! One table of a recording, piece by piece: for what is longer than memory, or when only a part or a few columns of it are
//! wanted. Works on a recording that is still being written, up to what was appended.

use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::FieldRef;
use arrow_select::filter::filter_record_batch;
use serde_arrow::schema::{SchemaLike, TracingOptions};

use crate::files::{self, Batches, Wanted};
use crate::{Table, read, untrusted};

/// Rows of one table, some thousand at a time, in file order.
pub struct Slices<T> {
    batches: Option<Batches>,
    t_ns: Range<u64>,
    given: read::Size,
    rows: PhantomData<T>,
}

/// The rows of table `T::NAME` of the recording in `dir` whose `t_ns` lies in `range`; of a table without that column all.
///
/// Only the columns that `T` has are read. A caller that needs two of them declares a row type with those two and
/// [`Table::NAME`] of the table; fields that the file does not have need `#[serde(default)]`.
///
/// # Errors
/// The table's file cannot be opened. Where it is damaged further on, the iterator says so.
pub fn slices<T: Table>(dir: &Path, range: Range<u64>) -> Result<Slices<T>> {
    let fields = Vec::<FieldRef>::from_type::<T>(TracingOptions::default())
        .with_context(|| format!("failed to derive the columns of table `{}`", T::NAME))?;
    let mut columns: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
    if !columns.iter().any(|name| name == TIME) {
        columns.push(TIME.into()); // to tell which rows are wanted
    }
    let wanted = Wanted { columns: Some(columns), t_ns: Some(range.clone()) };
    Ok(Slices {
        batches: files::batches(dir, T::NAME, &wanted)?,
        t_ns: range,
        given: read::Size::default(),
        rows: PhantomData,
    })
}

const TIME: &str = "t_ns";

impl<T> Slices<T> {
    /// Whether the recording has the table at all.
    pub fn is_there(&self) -> bool {
        self.batches.is_some()
    }

    /// What was given so far.
    pub(crate) fn given(&self) -> read::Size {
        self.given
    }
}

impl<T: Table> Iterator for Slices<T> {
    type Item = Result<Vec<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.as_mut()?.next()?;
        let rows = batch.and_then(|batch| rows(&batch, &self.t_ns));
        match &rows {
            Ok((_, size)) => self.given = self.given.with(*size),
            Err(_) => self.batches = None,
        }
        Some(rows.map(|(rows, _)| rows))
    }
}

/// The rows of a batch that are wanted, and what they take.
fn rows<T: Table>(batch: &RecordBatch, range: &Range<u64>) -> Result<(Vec<T>, read::Size)> {
    let damaged = || format!("table `{}` is damaged", T::NAME);
    read::measure(batch).with_context(damaged)?;
    let wanted = untrusted::decode(|| within(batch, range)).with_context(damaged)?;
    let size = read::measure(&wanted).with_context(damaged)?;
    let rows = untrusted::decode(|| Ok(serde_arrow::from_record_batch(&wanted)?))
        .with_context(|| format!("table `{}` does not have the columns of this version", T::NAME))?;
    Ok((rows, size))
}

/// The rows of a batch that lie in `range`.
fn within(batch: &RecordBatch, range: &Range<u64>) -> Result<RecordBatch> {
    let times = batch.column_by_name(TIME).and_then(|column| column.as_primitive_opt::<UInt64Type>());
    let Some(times) = times else { return Ok(batch.clone()) };
    let inside: BooleanArray = times.iter().map(|t| t.map(|t| range.contains(&t))).collect();
    Ok(filter_record_batch(batch, &inside)?)
}
