// SPDX-License-Identifier: Apache-2.0
//! Every table of a golden recording cut off and changed, at many places: a sealed one is refused with a
//! sentence; one without checksums (unsealed, or of an early version) is read or refused, and never panics.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use wakewalk_recording::{Recording, Writer, open};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/fixtures/busy-poll/recording");

/// Numbers without a pattern, the same in each run (splitmix64).
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit.max(1) as u64) as usize
    }
}

fn tables(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == ending));
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    files
}

/// A copy of `whole` with some bits changed, or without its end.
fn damage(whole: &[u8], noise: &mut Noise) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    if noise.below(4) == 0 {
        bytes.truncate(noise.below(whole.len()));
        return bytes;
    }
    for _ in 0..=noise.below(4) {
        // Headers and footers hold what readers rely on.
        let at = match noise.below(3) {
            0 => noise.below(whole.len().min(600)),
            1 => whole.len() - 1 - noise.below(whole.len().min(600)),
            _ => noise.below(whole.len()),
        };
        bytes[at] ^= 1 << noise.below(8);
    }
    bytes
}

fn each_damaged(dir: &Path, ending: &str, rounds: usize, check: impl Fn(&str, anyhow::Result<Recording>)) {
    let mut noise = Noise(7);
    for path in tables(dir, ending) {
        let whole = fs::read(&path).unwrap();
        for _ in 0..rounds {
            let damaged = damage(&whole, &mut noise);
            if damaged != whole {
                fs::write(&path, damaged).unwrap();
                check(path.file_name().unwrap().to_str().unwrap(), open(dir));
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
    whole.append_to(&mut writer).unwrap();
    drop(writer);
    each_damaged(&folder, "arrows", 60, |_, result| drop(result));
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
