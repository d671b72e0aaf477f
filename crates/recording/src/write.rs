// SPDX-License-Identifier: Apache-2.0
//! Writing: an Arrow IPC stream for each table while the capture runs, Parquet once it is sealed.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{FieldRef, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_arrow::schema::{SchemaLike, TracingOptions};

use crate::files::{self, HOT, META_FILE, PART, SEALED};
use crate::meta::Sum;
use crate::{Meta, SCHEMA, Sink, Slice, Table, Tables, disk, read, tables};

/// Smaller tables are sealed as they are.
const WORTH_COMPRESSING: u64 = 64 << 10;
/// Bytes of a sealed table that are written as one piece: what sealing holds in memory, and what a reader of a part of it
/// passes over at a time.
const GROUP_BYTES: usize = 16 << 20;

/// Writes one recording into a folder of its own.
pub struct Writer {
    dir: PathBuf,
    streams: HashMap<&'static str, Stream>,
}

/// A table that is being written.
struct Stream {
    fields: Vec<FieldRef>,
    writer: StreamWriter<BufWriter<File>>,
    /// How many rows were written.
    rows: u64,
    /// Items of their lists.
    items: u64,
}

impl Writer {
    /// Starts a recording in `dir`, which is made if missing and must hold no recording yet.
    ///
    /// # Errors
    /// The folder cannot be made or written to, or holds a recording.
    pub fn create(dir: &Path, meta: &Meta) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("failed to make folder `{}`", dir.display()))?;
        if dir.join(META_FILE).exists() {
            bail!("folder `{}` already holds a recording; name another folder or remove it", dir.display());
        }
        if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
            bail!("folder `{}` is not empty; name a new folder for the recording", dir.display());
        }
        begin(dir, meta)?;
        Ok(Self { dir: dir.to_path_buf(), streams: HashMap::new() })
    }

    /// The recording's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Appends rows to a table as one batch and hands it to the kernel, so that a kill loses
    /// nothing that was appended. An empty slice makes an empty table.
    ///
    /// # Errors
    /// The disk is full or the folder has gone.
    pub fn append<T: Table>(&mut self, rows: &[T]) -> Result<()> {
        let stream = match self.streams.entry(T::NAME) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Stream::create::<T>(&self.dir)?),
        };
        let batch = serde_arrow::to_record_batch(&stream.fields, &rows)
            .with_context(|| format!("failed to encode table `{}`", T::NAME))?;
        let written = stream.writer.write(&batch).and_then(|()| stream.writer.flush());
        stream.rows += rows.len() as u64;
        stream.items += read::items(&batch);
        written.map_err(|e| disk::failed(&format!("write table `{}`", T::NAME), &self.dir, e))
    }

    /// Appends every table that `tables` has.
    ///
    /// # Errors
    /// The disk is full or the folder has gone.
    pub fn append_all(&mut self, tables: &Tables) -> Result<()> {
        tables::each(&mut Writing { tables, writer: self })
    }
}

impl Sink for Writer {
    fn describe(&mut self, meta: &Meta) -> Result<()> {
        write_meta(&self.dir, meta)
    }

    fn put(&mut self, slice: Slice) -> Result<()> {
        self.append_all(&slice.tables)
    }

    fn rows(&self) -> u64 {
        // A reader takes five times as many items of one table as a capture may have rows.
        let items = self.streams.values().map(|stream| stream.items / 5).max().unwrap_or(0);
        self.streams.values().map(|stream| stream.rows).sum::<u64>().max(items)
    }

    /// Turns every stream into Parquet and marks the recording as whole. If that fails, the streams written so far stay readable.
    fn seal(&mut self, meta: &Meta) -> Result<()> {
        let mut files = BTreeMap::new();
        for (name, mut stream) in self.streams.drain() {
            let failed = |e: anyhow::Error| disk::failed(&format!("seal table `{name}`"), &self.dir, e);
            stream.writer.finish().map_err(|e| failed(e.into()))?;
            let rows = stream.rows;
            drop(stream);
            let sum = seal_table(&self.dir, name, rows).map_err(failed)?;
            files.insert(format!("{name}.{SEALED}"), sum);
        }
        write_meta(&self.dir, &Meta { sealed: true, files, ..meta.clone() })
    }
}

/// Writes each table that `tables` has.
struct Writing<'a> {
    tables: &'a Tables,
    writer: &'a mut Writer,
}

impl tables::Visit for Writing<'_> {
    fn table<T: Table + Send + Sync>(&mut self) -> Result<()> {
        let rows = self.tables.rows::<T>();
        let is_new = self.tables.has::<T>() && !self.writer.streams.contains_key(T::NAME);
        if rows.is_empty() && !is_new { Ok(()) } else { self.writer.append(rows) }
    }
}

impl Stream {
    fn create<T: Table>(dir: &Path) -> Result<Self> {
        let fields = Vec::<FieldRef>::from_type::<T>(TracingOptions::default())
            .with_context(|| format!("failed to derive the columns of table `{}`", T::NAME))?;
        let failed = |e: anyhow::Error| disk::failed(&format!("create table `{}`", T::NAME), dir, e);
        let file = File::create(dir.join(format!("{}.{HOT}", T::NAME))).map_err(|e| failed(e.into()))?;
        let writer = StreamWriter::try_new(BufWriter::new(file), &Schema::new(fields.clone()));
        Ok(Self { fields, writer: writer.map_err(|e| failed(e.into()))?, rows: 0, items: 0 })
    }
}

/// Packs a table. Its stream goes only when all of the `rows` that were written into it were read again.
fn seal_table(dir: &Path, name: &str, rows: u64) -> Result<Sum> {
    let hot = dir.join(format!("{name}.{HOT}"));
    let part = dir.join(format!("{name}.{SEALED}.{PART}"));
    let properties = properties(fs::metadata(&hot)?.len())?;
    let mut batches = files::own_stream(hot.clone())?.peekable();
    let schema = match batches.peek() {
        Some(Ok(first)) => first.schema(),
        _ => Arc::new(Schema::empty()),
    };
    let mut writer = ArrowWriter::try_new(File::create(&part)?, schema, Some(properties))?;
    let mut packed = 0;
    for batch in batches {
        let batch = batch?;
        packed += batch.num_rows() as u64;
        writer.write(&batch)?;
        if writer.in_progress_size() >= GROUP_BYTES {
            writer.flush()?;
        }
    }
    writer.close()?;
    ensure!(packed == rows, "`{}` has {packed} rows of the {rows} that were written", hot.display());
    let sum = disk::sum(&part)?;
    fs::rename(&part, dir.join(format!("{name}.{SEALED}")))?;
    fs::remove_file(&hot)?;
    Ok(sum)
}

/// How a table is packed. To set up the compression of a column takes as long as to compress 100 KB.
fn properties(bytes: u64) -> Result<WriterProperties> {
    let worth_it = bytes >= WORTH_COMPRESSING;
    let packing = if worth_it { Compression::ZSTD(ZstdLevel::try_new(3)?) } else { Compression::UNCOMPRESSED };
    Ok(WriterProperties::builder().set_compression(packing).build())
}

/// Adds rows to a table that is sealed. A reader finds the recording whole at every step of it.
pub(crate) fn amend<T: Table>(dir: &Path, mut meta: Meta, rows: &[&T]) -> Result<()> {
    let name = format!("{}.{SEALED}", T::NAME);
    meta.files.remove(&name);
    write_meta(dir, &meta)?;
    let mut stream = Stream::create::<T>(dir)?;
    let failed = |e: anyhow::Error| disk::failed(&format!("add to table `{}`", T::NAME), dir, e);
    let batch = serde_arrow::to_record_batch(&stream.fields, &rows).map_err(|e| failed(e.into()))?;
    let written = stream.writer.write(&batch).and_then(|()| stream.writer.finish());
    written.map_err(|e| failed(e.into()))?;
    drop(stream);
    let sum = seal_table(dir, T::NAME, rows.len() as u64).map_err(failed)?;
    meta.files.insert(name, sum);
    write_meta(dir, &meta)
}

/// Writes the first description. Of two captures into one folder at the same moment only one can make
/// the file, and the other is refused.
fn begin(dir: &Path, meta: &Meta) -> Result<()> {
    let part = dir.join(format!("{META_FILE}.{PART}"));
    let taken = || format!("folder `{}` is being written to by another capture; name another one", dir.display());
    match File::create_new(&part) {
        Ok(_) if dir.join(META_FILE).exists() => {
            let _ = fs::remove_file(&part); // ours, and nobody misses it
            bail!(taken());
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => bail!(taken()),
        made => made.map(drop).map_err(|e| disk::failed("begin a recording", dir, e))?,
    }
    write_meta(dir, meta)
}

fn write_meta(dir: &Path, meta: &Meta) -> Result<()> {
    let part = dir.join(format!("{META_FILE}.{PART}"));
    let meta = Meta { schema: SCHEMA, ..meta.clone() };
    let written = fs::write(&part, serde_json::to_string_pretty(&meta)? + "\n");
    written.and_then(|()| fs::rename(&part, dir.join(META_FILE))).map_err(|e| disk::failed("write meta.json", dir, e))
}
