// SPDX-License-Identifier: Apache-2.0
//! Reading: sealed tables from Parquet, unsealed ones from their stream up to the tear.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, bail};
use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::write::{HOT, SEALED};
use crate::{Meta, SCHEMA, Table, Tables, Writer, tables};

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
        tables::write_all(&self.tables, &mut writer)?;
        writer.seal(&self.meta)
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
    let text = fs::read_to_string(&path).with_context(|| {
        format!("`{}` holds no recording (no readable meta.json); name a folder that --save wrote", dir.display())
    })?;
    let meta: Meta = serde_json::from_str(&text)
        .with_context(|| format!("`{}` is not a recording's description; was it cut off?", path.display()))?;
    if meta.schema > SCHEMA {
        bail!(
            "recording `{}` has layout {}, this wakewalk reads up to {SCHEMA}; use a newer wakewalk",
            dir.display(),
            meta.schema
        );
    }
    let mut tables = Tables::default();
    tables::read_all(dir, &mut tables)?;
    Ok(Recording { meta, tables })
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
    for batch in &batches {
        let rows: Vec<T> = serde_arrow::from_record_batch(batch)
            .with_context(|| format!("table `{}` does not have the columns of this version", T::NAME))?;
        tables.extend(rows);
    }
    Ok(())
}

fn sealed_batches(path: &Path) -> Result<Vec<RecordBatch>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?.build()?;
    Ok(reader.collect::<Result<_, _>>()?)
}

/// Batches of a stream up to its end or up to the tear that a killed writer left.
pub(crate) fn stream_batches(path: &Path) -> Result<Vec<RecordBatch>> {
    let file = File::open(path).with_context(|| format!("failed to open `{}`", path.display()))?;
    let Ok(reader) = StreamReader::try_new(BufReader::new(file), None) else {
        return Ok(Vec::new()); // torn inside the header: nothing was written yet
    };
    Ok(reader.map_while(Result::ok).collect())
}
