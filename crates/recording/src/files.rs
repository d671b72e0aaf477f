// SPDX-License-Identifier: Apache-2.0
//! The files of a table: a stream while it is written, Parquet once it is sealed. Either is read batch by batch, so that what
//! is in memory does not grow with the file.

use std::fs::{self, File};
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, FieldRef, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use crate::{disk, untrusted};

/// Ending of a table that is still being written.
pub(crate) const HOT: &str = "arrows";
/// Ending of a sealed table.
pub(crate) const SEALED: &str = "parquet";
/// Ending of a file that takes its place once it is whole.
pub(crate) const PART: &str = "part";
/// What describes the recording.
pub(crate) const META_FILE: &str = "meta.json";
/// Rows of a sealed table that are decoded at a time.
const BATCH: usize = 8192;

/// What is wanted of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Columns; `None` = all. One that the table does not have is no error.
    pub columns: Option<Vec<String>>,
    /// Values of column `t_ns`. Pieces of the file in which none lies are passed over; others come whole.
    pub t_ns: Option<Range<u64>>,
}

/// The batches of a table.
pub(crate) struct Batches {
    path: PathBuf,
    source: Source,
    /// Rows, or items of a list, that the file says to have in one column; 0 = it does not say.
    pub declared: usize,
}

enum Source {
    Sealed(ParquetRecordBatchReader),
    /// Ends at the tear that a killed writer left.
    Hot(StreamReader<BufReader<File>>),
    /// Of this process: it has no tear.
    Own(StreamReader<BufReader<File>>),
    /// Torn inside the header: nothing was written yet.
    Empty,
}

/// Removes the files of a recording, and the folder if nobody has put anything else there. What cannot be removed stays.
pub fn remove(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| is_ours(&entry.path())).for_each(|entry| drop(fs::remove_file(entry.path())));
    let _ = fs::remove_dir(dir);
}

/// Whether a file is one of those that a recording consists of.
fn is_ours(file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str());
    file.ends_with(META_FILE) || ending.is_some_and(|ending| [HOT, SEALED, PART].contains(&ending))
}

/// The batches of table `name` in `dir`; none where the recording does not have it.
pub(crate) fn batches(dir: &Path, name: &str, wanted: &Wanted) -> Result<Option<Batches>> {
    let [sealed, hot] = [SEALED, HOT].map(|ending| dir.join(format!("{name}.{ending}")));
    if sealed.exists() {
        return from_sealed(sealed, wanted).map(Some);
    }
    if hot.exists() { stream(hot, wanted).map(Some) } else { Ok(None) }
}

/// The batches of a stream, up to its end or up to the tear.
pub(crate) fn stream(path: PathBuf, wanted: &Wanted) -> Result<Batches> {
    let open = |columns: Option<Vec<usize>>| -> Result<_> { Ok(stream_reader(disk::open(&path)?, columns).ok()) };
    let reader = match (open(None)?, &wanted.columns) {
        // The columns are known by number only once the header was read.
        (Some(whole), Some(names)) => open(Some(positions(&whole.schema(), names)))?,
        (reader, _) => reader,
    };
    Ok(Batches { path, source: reader.map_or(Source::Empty, Source::Hot), declared: 0 })
}

/// All of a stream that this process has written to its end: what cannot be read of it was damaged since.
pub(crate) fn own_stream(path: PathBuf) -> Result<Batches> {
    let reader = stream_reader(disk::open_own(&path)?, None).with_context(|| damaged(&path))?;
    Ok(Batches { path, source: Source::Own(reader), declared: 0 })
}

fn stream_reader(file: File, columns: Option<Vec<usize>>) -> Result<StreamReader<BufReader<File>>> {
    untrusted::decode(|| Ok(StreamReader::try_new(BufReader::new(file), columns)?))
}

fn from_sealed(path: PathBuf, wanted: &Wanted) -> Result<Batches> {
    let file = disk::open(&path)?;
    let read = untrusted::decode(|| {
        let metadata = with_views(&ArrowReaderMetadata::load(&file, ArrowReaderOptions::default())?)?;
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata).with_batch_size(BATCH);
        let declared = declared(&builder)?;
        if let Some(names) = &wanted.columns {
            let roots = positions(builder.schema(), names);
            let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
            builder = builder.with_projection(mask);
        }
        if let Some(range) = &wanted.t_ns {
            let groups = builder.metadata().row_groups().iter().enumerate();
            let groups = groups.filter(|(_, group)| may_hold(group, range)).map(|(at, _)| at).collect();
            builder = builder.with_row_groups(groups);
        }
        Ok((builder.build()?, declared))
    });
    let (reader, declared) = read.with_context(|| damaged(&path))?;
    Ok(Batches { path, source: Source::Sealed(reader), declared })
}

/// The same with texts as views. A text that stands in all rows is in the file once, and in memory once too until somebody
/// has measured it.
fn with_views(metadata: &ArrowReaderMetadata) -> Result<ArrowReaderMetadata> {
    fn viewed(field: &FieldRef) -> FieldRef {
        let of_type = |kind| Arc::new(field.as_ref().clone().with_data_type(kind));
        match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => of_type(DataType::Utf8View),
            DataType::List(item) => of_type(DataType::List(viewed(item))),
            DataType::LargeList(item) => of_type(DataType::LargeList(viewed(item))),
            _ => field.clone(),
        }
    }
    let schema = metadata.schema();
    let fields: Vec<FieldRef> = schema.fields().iter().map(viewed).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    Ok(ArrowReaderMetadata::try_new(metadata.metadata().clone(), ArrowReaderOptions::new().with_schema(schema))?)
}

fn damaged(path: &Path) -> String {
    format!("failed to read `{}`: it is damaged or cut off", path.display())
}

fn positions(schema: &Schema, names: &[String]) -> Vec<usize> {
    let wanted = |(_, field): &(usize, &FieldRef)| names.contains(field.name());
    schema.fields().iter().enumerate().filter(wanted).map(|(at, _)| at).collect()
}

/// The rows of the file, or the items of its longest column.
fn declared(builder: &ParquetRecordBatchReaderBuilder<File>) -> Result<usize> {
    let metadata = builder.metadata();
    let items = |column| metadata.row_groups().iter().map(|group| group.column(column).num_values()).sum::<i64>();
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let most = (0..columns).map(items).chain([metadata.file_metadata().num_rows()]).max().unwrap_or(0);
    let Ok(most) = usize::try_from(most) else { bail!("it has a negative number of rows") };
    Ok(most)
}

/// Whether a piece of a sealed table may have rows of `range`; it may where the file does not say.
fn may_hold(group: &RowGroupMetaData, range: &Range<u64>) -> bool {
    let of_time = group.columns().iter().find(|column| column.column_path().string() == "t_ns");
    let Some(Statistics::Int64(times)) = of_time.and_then(|column| column.statistics()) else { return true };
    // Parquet keeps unsigned numbers as signed ones of the same bits; no time of ours has the highest.
    let [least, most] = [times.min_opt(), times.max_opt()].map(|time| time.and_then(|t| u64::try_from(*t).ok()));
    least.is_none_or(|least| least < range.end) && most.is_none_or(|most| most >= range.start)
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match &mut self.source {
            Source::Sealed(reader) => untrusted::decode(|| Ok(reader.next().transpose()?)),
            Source::Own(reader) => untrusted::decode(|| Ok(reader.next().transpose()?)),
            Source::Hot(reader) => Ok(untrusted::decode(|| Ok(reader.next().transpose()?)).unwrap_or_default()),
            Source::Empty => return None,
        };
        if !matches!(batch, Ok(Some(_))) {
            self.source = Source::Empty; // what panicked must not be asked again
        }
        batch.map_err(|why| why.context(damaged(&self.path))).transpose()
    }
}
