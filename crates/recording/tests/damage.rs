// SPDX-License-Identifier: Apache-2.0
//! Every table of a golden recording cut off and changed, at many places: a sealed one is refused with a
//! sentence; one without checksums (unsealed, or of an early version) is read or refused, and never panics.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use wakewalk_recording::tables::Stack;
use wakewalk_recording::{Meta, Part, Recording, Writer, open, open_part, slices};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/fixtures/busy-poll/recording");

fn tables(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == ending));
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    files
}

/// A copy of `whole` with some bits changed, or without its end.
fn damage(whole: &[u8], noise: &mut Rng) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    if noise.usize(..4) == 0 {
        bytes.truncate(noise.usize(..whole.len()));
        return bytes;
    }
    for _ in 0..=noise.usize(..4) {
        // Headers and footers hold what readers rely on.
        let at = match noise.usize(..3) {
            0 => noise.usize(..whole.len().min(600)),
            1 => whole.len() - 1 - noise.usize(..whole.len().min(600)),
            _ => noise.usize(..whole.len()),
        };
        bytes[at] ^= 1 << noise.usize(..8);
    }
    bytes
}

fn each_damaged(dir: &Path, ending: &str, rounds: usize, check: impl Fn(&str, anyhow::Result<Recording>)) {
    let mut noise = Rng::with_seed(7);
    for path in tables(dir, ending) {
        let whole = fs::read(&path).unwrap();
        for _ in 0..rounds {
            let damaged = damage(&whole, &mut noise);
            if damaged != whole {
                fs::write(&path, damaged).unwrap();
                check(path.file_name().unwrap().to_str().unwrap(), open(dir));
                let all = Part { from_ns: 0, to_ns: u64::MAX };
                check(path.file_name().unwrap().to_str().unwrap(), open_part(dir, all).map(|(part, _)| part));
            }
        }
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn a_sealed_recording_that_was_changed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("r");
    open(Path::new(FIXTURE)).unwrap().save(&folder).unwrap();
    each_damaged(&folder, "parquet", 20, |name, result| {
        let said = format!("{:#}", result.err().unwrap_or_else(|| panic!("{name} was believed")));
        assert!(said.contains("is damaged") && said.contains(name), "{said}");
    });
    assert!(open(&folder).is_ok(), "and whole again");
}

#[test]
fn without_checksums_nothing_panics() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("r");
    open(Path::new(FIXTURE)).unwrap().save(&folder).unwrap();
    let meta = fs::read_to_string(folder.join("meta.json")).unwrap();
    let mut meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
    meta.as_object_mut().unwrap().remove("files");
    fs::write(folder.join("meta.json"), meta.to_string()).unwrap();
    each_damaged(&folder, "parquet", 60, |_, result| drop(result));
}

#[test]
fn an_unsealed_recording_that_was_changed_does_not_panic() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("r");
    let whole = open(Path::new(FIXTURE)).unwrap();
    let mut writer = Writer::create(&folder, &whole.meta).unwrap();
    writer.append_all(&whole.tables).unwrap();
    drop(writer);
    each_damaged(&folder, "arrows", 60, |_, result| drop(result));
}

/// A recording of one stack, written as wakewalk writes it: sealed, then unsealed.
fn of_one_stack(dir: &Path, frames: usize) -> [PathBuf; 2] {
    let mut recording = Recording::default();
    recording.tables.extend([Stack { id: 1, frames: vec![1; frames], ..Stack::default() }]);
    recording.meta.tool = "a stranger".into();
    let [sealed, torn] = ["sealed", "torn"].map(|name| dir.join(format!("{name}-{frames}")));
    recording.save(&sealed).unwrap();
    Writer::create(&torn, &recording.meta).unwrap().append_all(&recording.tables).unwrap();
    [sealed, torn]
}

#[test]
fn lists_inside_rows_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    for folder in of_one_stack(dir.path(), 300_000) {
        let said = format!("{:#}", open(&folder).err().unwrap());
        assert!(said.contains("table `stack`") && said.contains("a list of 300000 items"), "{said}");
        assert!(said.contains("is damaged, or was not written by wakewalk"), "{said}");
    }
    for folder in of_one_stack(dir.path(), 60_000) {
        assert_eq!(open(&folder).unwrap().rows::<Stack>()[0].frames.len(), 60_000);
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("r");
    open(Path::new(FIXTURE)).unwrap().save(&folder).unwrap();
    fs::remove_file(folder.join("thread.parquet")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(folder.join("thread.parquet")).status();
    assert!(status.unwrap().success());
    assert!(open(&folder).is_err(), "a FIFO is not waited for");
    fs::remove_file(folder.join("thread.parquet")).unwrap();
    fs::create_dir(folder.join("thread.parquet")).unwrap();
    assert!(open(&folder).is_err());
}

/// It takes no room on the disk, and hours to be read.
#[test]
fn a_file_larger_than_any_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path(), &Meta::default()).unwrap();
    writer.append(&[Stack { id: 1, frames: vec![1], complete: true }]).unwrap();
    drop(writer);
    let file = fs::File::options().write(true).open(dir.path().join("stack.arrows")).unwrap();
    assert!(open(dir.path()).is_ok());
    file.set_len((4 << 30) + 1).unwrap();
    let whole = open(dir.path()).map(drop);
    let streamed = slices::<Stack>(dir.path(), 0..u64::MAX).map(drop);
    for refused in [whole, streamed] {
        let why = format!("{:#}", refused.unwrap_err());
        assert!(why.contains("is no file of a recording"), "{why}");
    }
}
