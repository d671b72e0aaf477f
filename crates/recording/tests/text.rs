// SPDX-License-Identifier: Apache-2.0
//! A small file that holds one text in thousands of rows. Alone in its file: it looks at the memory of the whole process.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use wakewalk_recording::tables::{Process, Thread};
use wakewalk_recording::{Part, Recording, open, open_part, slices};

/// Length of the text; of longer ones the file would hold each.
const LENGTH: usize = 512 << 10;

/// The most memory so far, bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap() * 1024
}

/// Processes that all have the one command line.
fn write(dir: &Path, rows: usize) {
    let mut recording = Recording::default();
    recording.tables.extend([Thread { t_ns: 1, ..Thread::default() }]);
    recording.save(dir).unwrap();
    let text = StringArray::from(vec!["x".repeat(LENGTH)]);
    let texts = DictionaryArray::new(Int32Array::from(vec![0; rows]), Arc::new(text));
    let batch = RecordBatch::try_from_iter([("cmdline", Arc::new(texts) as ArrayRef)]).unwrap();
    let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true);
    let file = File::create(dir.join("process.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert!(fs::metadata(dir.join("process.parquet")).unwrap().len() < 2 << 20);
}

#[test]
fn text_is_bounded_before_it_is_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let [few, many] = [40, 3500].map(|rows| (dir.path().join(rows.to_string()), rows));
    [&few, &many].into_iter().for_each(|(folder, rows)| write(folder, *rows));
    let read = open(&few.0).unwrap();
    assert_eq!((read.rows::<Process>().len(), read.rows::<Process>()[39].cmdline.len()), (few.1, LENGTH));
    drop(read);
    let before = peak();
    let all = Part { from_ns: 0, to_ns: 1 };
    let refusals = [
        open(&many.0).err(),
        open_part(&many.0, all).err(),
        slices::<Process>(&many.0, 0..1).unwrap().find_map(Result::err),
    ];
    for refusal in refusals {
        let said = format!("{:#}", refusal.unwrap());
        assert!(said.contains("table `process`") && said.contains("more text than is read at a time"), "{said}");
    }
    let more = peak() - before;
    assert!(more < 64 << 20, "{more} bytes");
}
