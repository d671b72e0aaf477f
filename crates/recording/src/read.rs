// SPDX-License-Identifier: Apache-2.0
//! Reading all of a recording into memory, with bounds: it may come from anybody.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericListArray, OffsetSizeTrait, RecordBatch};
use arrow_schema::DataType;

use crate::files::{self, META_FILE, Wanted};
use crate::{Meta, SCHEMA, Sink, Table, Tables, Writer, disk, tables, untrusted, write};

/// Largest description: some kilobytes, and the target's processes by number.
const MAX_META_BYTES: u64 = 16 << 20;

/// Rows of one table, with the items of their lists. Packed, they can be so few bytes that the size of the file is no limit.
pub(crate) const MAX_ROWS: usize = 1 << 25;

/// Items of one list, such as the frames of a stack: a snapshot holds a few thousand return addresses at most.
const MAX_ITEMS: usize = 1 << 16;

/// Bytes of text of one recording. Packed, a word that stands in every row is there once, and so it is as a view of Arrow's; each
/// row in memory has its own.
const MAX_TEXT: usize = 1 << 30;

/// Bytes that the rows of all tables may take: four times of what a capture comes to that ends by itself with as many as it may have.
const MAX_BYTES: usize = 8 << 30;

/// Why a recording that has more is refused.
const TOO_MUCH: &str = "with it the recording takes more memory than is read at a time, and than is to be believed; take a part of \
                        it, or a smaller one (--at 0s..10m)";

/// Likewise.
const TOO_LONG: &str = "with it the recording has more text than is read at a time, and than is to be believed; take a part of it, \
                        or a smaller one (--at 0s..10m)";

/// Why a table that has more is refused.
const TOO_MANY: &str = "it has more rows than are read at a time; take a part of it, or a smaller one (--at 0s..10m)";

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
        writer.append_all(&self.tables)?;
        writer.seal(&self.meta)
    }

    /// Adds rows in the folder that it was read from, which could not be known before, such as what reading it cost.
    ///
    /// # Errors
    /// The disk is full.
    pub fn amend<T: Table + Send + Sync>(&self, dir: &Path, rows: &[T]) -> Result<()> {
        let all: Vec<&T> = self.rows::<T>().iter().chain(rows).collect();
        write::amend(dir, self.meta.clone(), &all)
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
    let meta = checked(dir)?;
    let mut tables = Tables::default();
    tables::each(&mut Reading { dir, tables: &mut tables, text: 0, bytes: 0 })?;
    Ok(Recording { meta, tables })
}

/// What the recording in `dir` says of itself, if its files are as they were written.
pub(crate) fn checked(dir: &Path) -> Result<Meta> {
    let meta = describe(dir)?;
    check_files(dir, &meta)?;
    Ok(meta)
}

/// What the recording in `dir` says of itself.
///
/// # Errors
/// There is none, or it is of a newer version.
pub fn describe(dir: &Path) -> Result<Meta> {
    let path = dir.join(META_FILE);
    if dir.is_file() {
        bail!("`{}` holds no recording: it is a file; name a folder that --save wrote", dir.display());
    }
    if !dir.is_dir() {
        bail!("`{}` holds no recording: there is no such folder; name one that --save wrote", dir.display());
    }
    if !path.exists() {
        bail!("`{}` holds no recording: no meta.json is in it; name a folder that --save wrote", dir.display());
    }
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
    Ok(meta)
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

/// Reads each table into `tables`, where the recording has it.
struct Reading<'a> {
    dir: &'a Path,
    tables: &'a mut Tables,
    /// Bytes of text so far.
    text: usize,
    /// Bytes of rows so far, beside it.
    bytes: usize,
}

impl tables::Visit for Reading<'_> {
    fn table<T: Table + Send + Sync>(&mut self) -> Result<()> {
        let Some(batches) = files::batches(self.dir, T::NAME, &Wanted::default())? else { return Ok(()) };
        let damaged =
            || format!("table `{}` of `{}` is damaged, or was not written by wakewalk", T::NAME, self.dir.display());
        let mut size = Size { rows: batches.declared, text: self.text };
        size.check().with_context(damaged)?;
        size.rows = 0;
        let (others, mut held) = (self.bytes, 0);
        self.tables.extend::<T>(std::iter::empty());
        for batch in batches {
            let batch = batch?;
            size = measure(&batch).and_then(|of_batch| size.with(of_batch).check()).with_context(damaged)?;
            held += batch.num_rows();
            self.bytes = size.with_others::<T>(others, held).with_context(damaged)?;
            let rows: Vec<T> = untrusted::decode(|| Ok(serde_arrow::from_record_batch(&batch)?))
                .with_context(|| format!("table `{}` does not have the columns of this version", T::NAME))?;
            self.tables.extend(rows);
        }
        self.text = size.text;
        Ok(())
    }
}

/// What is held in memory of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    /// Rows, with the items of their lists. Rows without columns take no bytes at all.
    pub rows: usize,
    /// Bytes of their texts.
    pub text: usize,
}

impl Size {
    /// Both together.
    pub fn with(self, other: Self) -> Self {
        Self { rows: self.rows.saturating_add(other.rows), text: self.text.saturating_add(other.text) }
    }

    /// Bytes of `others` and of so many rows of this table, with the items of their lists, if so much may be held beside all texts.
    pub fn with_others<T>(self, others: usize, rows: usize) -> Result<usize> {
        let items = self.rows.saturating_sub(rows).saturating_mul(size_of::<u64>());
        let bytes = others.saturating_add(rows.saturating_mul(size_of::<T>())).saturating_add(items);
        ensure!(bytes.saturating_add(self.text) <= MAX_BYTES, TOO_MUCH);
        Ok(bytes)
    }

    /// Itself, if so much may be held.
    pub fn check(self) -> Result<Self> {
        match self {
            _ if self.rows > MAX_ROWS => bail!(TOO_MANY),
            _ if self.text > MAX_TEXT => bail!(TOO_LONG),
            _ => Ok(self),
        }
    }
}

/// What a batch takes as rows in memory. None of its lists is longer than any that wakewalk writes.
pub(crate) fn measure(batch: &RecordBatch) -> Result<Size> {
    let mut all = Size { rows: batch.num_rows(), text: 0 };
    for column in batch.columns() {
        let size = match column.data_type() {
            DataType::List(_) => list(column.as_list::<i32>()),
            DataType::LargeList(_) => list(column.as_list::<i64>()),
            _ => Ok(Size { rows: 0, text: text(column.as_ref())? }),
        };
        all = all.with(size?);
    }
    all.check()
}

/// The items of all lists of a batch, which a reader counts as rows.
pub(crate) fn items(batch: &RecordBatch) -> u64 {
    let of = |column: &std::sync::Arc<dyn Array>| match column.data_type() {
        DataType::List(_) => column.as_list::<i32>().offsets().lengths().sum(),
        DataType::LargeList(_) => column.as_list::<i64>().offsets().lengths().sum(),
        _ => 0_usize,
    };
    batch.columns().iter().map(of).sum::<usize>() as u64
}

/// The items of all of a column's lists.
fn list<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> Result<Size> {
    let lengths = || list.offsets().lengths();
    let longest = lengths().max().unwrap_or(0);
    if longest > MAX_ITEMS {
        bail!("a row holds a list of {longest} items; wakewalk writes {MAX_ITEMS} at most");
    }
    let (first, items) = (list.offsets()[0].as_usize(), lengths().fold(0, usize::saturating_add));
    Ok(Size { rows: items, text: text(&list.values().slice(first, items))? })
}

/// Bytes of a column's texts, each as often as it stands there; 0 for a column of numbers.
fn text(column: &dyn Array) -> Result<usize> {
    fn between<O: OffsetSizeTrait>(offsets: &[O]) -> usize {
        let [first, last] = [offsets.first(), offsets.last()].map(|end| end.map_or(0, |end| end.as_usize()));
        last.saturating_sub(first)
    }
    match column.data_type() {
        DataType::Utf8 => Ok(between(column.as_string::<i32>().value_offsets())),
        DataType::LargeUtf8 => Ok(between(column.as_string::<i64>().value_offsets())),
        DataType::Utf8View => {
            Ok(column.as_string_view().lengths().fold(0, |sum, length| sum.saturating_add(length as usize)))
        }
        DataType::Boolean | DataType::Null => Ok(0),
        number if number.is_primitive() => Ok(0),
        // No table has others.
        other => bail!("a column of type `{other}` is none that wakewalk writes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_together_have_a_bound() {
        type Row = [u8; 300];
        let (rows, mut bytes) = (1 << 24, 0);
        let tables = (0..100).map_while(|_| {
            bytes = Size { rows, text: 0 }.with_others::<Row>(bytes, rows).ok()?;
            Some(())
        });
        assert_eq!(tables.count(), 1, "16 million rows of 300 bytes each");
        let fits = |rows, items, text| Size { rows: rows + items, text }.with_others::<u64>(0, rows).is_ok();
        assert!(fits(10, 0, MAX_BYTES - 80) && !fits(10, 1, MAX_BYTES - 80), "items count too");
    }
}
