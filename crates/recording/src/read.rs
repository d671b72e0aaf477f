// SPDX-License-Identifier: Apache-2.0
//! Reading: sealed tables from Parquet, unsealed ones from their stream up to the tear.

use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericListArray, OffsetSizeTrait, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::write::{HOT, SEALED};
use crate::{Meta, SCHEMA, Table, Tables, Writer, disk, tables, untrusted, write};

/// Largest description: some kilobytes, and the target's processes by number.
const MAX_META_BYTES: u64 = 16 << 20;

/// Rows of one table, with the items of their lists. Packed, they can be so few bytes that the size of the file is no limit.
const MAX_ROWS: usize = 1 << 25;

/// Items of one list, such as the frames of a stack: a snapshot holds a few thousand return addresses at most.
const MAX_ITEMS: usize = 1 << 16;

/// A recording in memory.
#[derive(Default)]
pub struct Recording {
    /// What, where, when.
    pub meta: Meta,
    /// The rows.
    pub tables: Tables,
}

impl Recording {
    /// Writes it into a folder, whole and sealed.
    ///
    /// # Errors
    /// The folder holds a recording already, or the disk is full.
    pub fn save(&self, dir: &Path) -> Result<()> {
        let mut writer = Writer::create(dir, &self.meta)?;
        self.append_to(&mut writer)?;
        writer.seal(&self.meta)
    }

    /// Adds rows that could not be known before it was read, such as what reading it cost; in its folder too, if it is kept.
    ///
    /// # Errors
    /// The disk is full.
    pub fn amend<T: Table + Send + Sync>(&mut self, dir: Option<&Path>, rows: Vec<T>) -> Result<()> {
        self.tables.extend(rows);
        match dir {
            Some(dir) => write::amend(dir, &mut self.meta, self.tables.rows::<T>()),
            None => Ok(()),
        }
    }

    /// Appends all its rows to a recording that is being written.
    ///
    /// # Errors
    /// The disk is full.
    pub fn append_to(&self, writer: &mut Writer) -> Result<()> {
        tables::write_all(&self.tables, writer)
    }

    /// Rows of a table; empty where it is missing.
    pub fn rows<T: Table + Send + Sync>(&self) -> &[T] {
        self.tables.rows()
    }
}

/// Reads the recording in `dir`.
///
/// # Errors
/// There is none, it is of a newer version, or a sealed table is damaged; the sentence says which.
pub fn open(dir: &Path) -> Result<Recording> {
    let path = dir.join("meta.json");
    let text = disk::read(&path, MAX_META_BYTES).with_context(|| {
        format!("`{}` holds no recording (no readable meta.json); name a folder that --save wrote", dir.display())
    })?;
    let meta: Meta = serde_json::from_slice(&text).map_err(|e| {
        let how = if e.is_eof() { "was cut off" } else { "is none, or was changed" };
        anyhow!("`{}`, a recording's description, {how}; copy the recording again", path.display())
    })?;
    if meta.schema == 0 {
        bail!("`{}` was not written by wakewalk; name a folder that --save wrote", path.display());
    }
    if meta.schema > SCHEMA {
        bail!(
            "recording `{}` has layout {}, this wakewalk reads up to {SCHEMA}; use a newer wakewalk",
            dir.display(),
            meta.schema
        );
    }
    check_files(dir, &meta)?;
    let mut tables = Tables::default();
    tables::read_all(dir, &mut tables)?;
    Ok(Recording { meta, tables })
}

/// A recording that was cut off or changed on its way is refused: its numbers would be believed.
fn check_files(dir: &Path, meta: &Meta) -> Result<()> {
    for (name, sum) in &meta.files {
        let damaged = |how: String| anyhow!("recording `{}` is damaged: {how}; copy it again", dir.display());
        if name.contains('/') {
            return Err(damaged(format!("its description names a file `{name}`")));
        }
        let found = disk::sum(&dir.join(name)).map_err(|e| damaged(format!("{e:#}")))?;
        if found.bytes != sum.bytes {
            return Err(damaged(format!("`{name}` has {} bytes instead of {}", found.bytes, sum.bytes)));
        }
        if found != *sum {
            return Err(damaged(format!("the content of `{name}` is not what was written")));
        }
    }
    Ok(())
}

/// Reads one table into `tables`, where the recording has it.
pub(crate) fn table<T: Table + Send + Sync>(dir: &Path, tables: &mut Tables) -> Result<()> {
    let sealed = dir.join(format!("{}.{SEALED}", T::NAME));
    let hot = dir.join(format!("{}.{HOT}", T::NAME));
    let batches = if sealed.exists() {
        sealed_batches(&sealed)
            .with_context(|| format!("failed to read `{}`: it is damaged or cut off", sealed.display()))?
    } else if hot.exists() {
        stream_batches(&hot)?
    } else {
        return Ok(());
    };
    tables.extend::<T>(std::iter::empty());
    let mut left = MAX_ROWS;
    for batch in &batches {
        left = room_behind(batch, left).with_context(|| {
            format!("table `{}` of `{}` is damaged, or was not written by wakewalk", T::NAME, dir.display())
        })?;
        let rows: Vec<T> = untrusted::decode(|| Ok(serde_arrow::from_record_batch(batch)?))
            .with_context(|| format!("table `{}` does not have the columns of this version", T::NAME))?;
        tables.extend(rows);
    }
    Ok(())
}

/// How many more rows and items a table may have behind this batch. Rows without columns take no bytes at all.
fn room_behind(batch: &RecordBatch, room: usize) -> Result<usize> {
    let mut used = batch.num_rows();
    for column in batch.columns() {
        let (longest, items) = lists(column.as_ref())?;
        if longest > MAX_ITEMS {
            bail!("a row holds a list of {longest} items; wakewalk writes {MAX_ITEMS} at most");
        }
        used = used.saturating_add(items);
    }
    room.checked_sub(used).context("it has more rows than wakewalk writes")
}

/// Length of a column's longest list, and of all of them together; 0 for a column without lists.
fn lists(column: &dyn Array) -> Result<(usize, usize)> {
    fn measured<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> (usize, usize) {
        let lengths = || list.offsets().lengths();
        (lengths().max().unwrap_or(0), lengths().fold(0, usize::saturating_add))
    }
    match column.data_type() {
        DataType::List(_) => Ok(measured(column.as_list::<i32>())),
        DataType::LargeList(_) => Ok(measured(column.as_list::<i64>())),
        // No table has others.
        DataType::FixedSizeList(..) | DataType::ListView(_) | DataType::LargeListView(_) | DataType::Map(..) => {
            bail!("column `{}` is no list as wakewalk writes it", column.data_type())
        }
        _ => Ok((0, 0)),
    }
}

fn sealed_batches(path: &Path) -> Result<Vec<RecordBatch>> {
    let file = disk::open(path)?;
    untrusted::decode(|| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
        let metadata = reader.metadata();
        let rows = metadata.file_metadata().num_rows();
        let items = |column| metadata.row_groups().iter().map(|group| group.column(column).num_values()).sum::<i64>();
        let columns = metadata.file_metadata().schema_descr().num_columns();
        let most = (0..columns).map(items).chain([rows]).max().unwrap_or(0);
        if usize::try_from(most).is_ok_and(|most| most > MAX_ROWS) {
            bail!("it has more rows than wakewalk writes");
        }
        Ok(reader.build()?.collect::<Result<_, _>>()?)
    })
}

/// Batches of a stream up to its end or up to the tear that a killed writer left.
pub(crate) fn stream_batches(path: &Path) -> Result<Vec<RecordBatch>> {
    let file = BufReader::new(disk::open(path)?);
    let Ok(mut reader) = untrusted::decode(|| Ok(StreamReader::try_new(file, None)?)) else {
        return Ok(Vec::new()); // torn inside the header: nothing was written yet
    };
    let mut batches = Vec::new();
    while let Ok(Some(batch)) = untrusted::decode(|| Ok(reader.next().transpose()?)) {
        batches.push(batch);
    }
    Ok(batches)
}
