// SPDX-License-Identifier: Apache-2.0
//! What was written is what is read: sealed, unsealed, torn, of a newer version, not there.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::FileExt;

use wakewalk_recording::tables::{Sample, Stack, Thread};
use wakewalk_recording::{Meta, Sink, Writer, open};

fn sample(t_ns: u64, result: Option<i64>) -> Sample {
    Sample { t_ns, pid: 7, args: vec![1, u64::MAX], result, ..Sample::default() }
}

fn write(dir: &std::path::Path) -> Writer {
    let mut writer = Writer::create(dir, &Meta::default()).unwrap();
    writer.append(&[sample(1, None), sample(2, Some(-11))]).unwrap();
    writer.append(&[sample(3, Some(0))]).unwrap();
    writer.append::<Stack>(&[]).unwrap();
    writer
}

#[test]
fn sealed_and_unsealed_read_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = write(dir.path());
    let before = open(dir.path()).unwrap();
    writer.seal(&Meta { length_ns: 5, ..Meta::default() }).unwrap();
    let after = open(dir.path()).unwrap();
    assert_eq!(before.rows::<Sample>(), after.rows::<Sample>());
    assert_eq!(after.rows::<Sample>()[1].result, Some(-11));
    assert!(after.tables.has::<Stack>() && !after.tables.has::<Thread>());
    assert!(!before.meta.sealed && after.meta.sealed && after.meta.length_ns == 5);
}

#[test]
fn rows_that_come_after_the_seal_are_read_too() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path()).seal(&Meta { length_ns: 5, ..Meta::default() }).unwrap();
    let first = open(dir.path()).unwrap();
    first.amend(dir.path(), &[sample(4, None)]).unwrap();
    open(dir.path()).unwrap().amend(dir.path(), &[Thread { tid: 9, ..Thread::default() }]).unwrap();
    let again = open(dir.path()).unwrap();
    assert_eq!(again.rows::<Sample>()[..3], *first.rows::<Sample>());
    assert_eq!((again.rows::<Sample>().len(), again.rows::<Thread>()[0].tid), (4, 9));
    assert!(again.meta.sealed && again.meta.length_ns == 5);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4, "three tables and the description");
}

#[test]
fn a_large_table_is_compressed() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path(), &Meta::default()).unwrap();
    let rows: Vec<Sample> = (0..10_000).map(|at| sample(at, None)).collect();
    writer.append(&rows).unwrap();
    writer.seal(&Meta::default()).unwrap();
    assert_eq!(open(dir.path()).unwrap().rows::<Sample>(), rows);
    let bytes = fs::metadata(dir.path().join("sample.parquet")).unwrap().len();
    assert!(bytes < 80_000, "{bytes} bytes, and the times alone are 80,000");
}

#[test]
fn a_torn_stream_loses_its_last_batch_only() {
    let dir = tempfile::tempdir().unwrap();
    drop(write(dir.path()));
    let path = dir.path().join("sample.arrows");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 40]).unwrap();
    assert_eq!(open(dir.path()).unwrap().rows::<Sample>().len(), 2);
    fs::write(&path, &bytes[..10]).unwrap();
    assert_eq!(open(dir.path()).unwrap().rows::<Sample>().len(), 0);
}

/// The stream of the process that seals: it ends where it was ended, and a tear in it is damage.
#[test]
fn a_stream_that_cannot_be_read_again_stays() {
    // The length of a batch's head: longer than the file, and that of the mark of the end.
    for length in [i32::MAX, 0] {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(dir.path(), &Meta::default()).unwrap();
        writer.append(&[sample(1, None)]).unwrap();
        let path = dir.path().join("sample.arrows");
        let second = fs::metadata(&path).unwrap().len();
        writer.append(&[sample(2, None)]).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&length.to_le_bytes(), second + 4).unwrap();
        let said = format!("{:#}", writer.seal(&Meta::default()).unwrap_err());
        assert!(said.contains("failed to seal table `sample`"), "{said}");
        assert!(path.exists() && !dir.path().join("sample.parquet").exists());
        let left = open(dir.path()).unwrap();
        assert!(left.rows::<Sample>().len() == 1 && !left.meta.sealed);
    }
}

#[test]
fn its_rows_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(write(dir.path()).rows(), 3, "of all batches");
}

#[test]
fn bad_recordings_are_refused_with_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let error = |dir: &std::path::Path| format!("{:#}", open(dir).err().unwrap());
    assert!(error(dir.path()).contains("holds no recording"));
    write(dir.path()).seal(&Meta::default()).unwrap();
    fs::write(dir.path().join("sample.parquet"), b"PAR1 no").unwrap();
    assert!(error(dir.path()).contains("damaged"));
    fs::write(dir.path().join("meta.json"), r#"{"schema": 99}"#).unwrap();
    assert!(error(dir.path()).contains("use a newer wakewalk"));
    fs::write(dir.path().join("meta.json"), r#"{"schema""#).unwrap();
    assert!(error(dir.path()).contains("cut off"));
}

#[test]
fn a_folder_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    drop(write(dir.path()));
    let error = format!("{:#}", Writer::create(dir.path(), &Meta::default()).err().unwrap());
    assert!(error.contains("already holds a recording"));
}
