// SPDX-License-Identifier: Apache-2.0
//! One file of a recording, read as part of one, for fuzzing and for the tests that keep what fuzzing
//! found. Not part of the program.

use std::path::PathBuf;
use std::{env, fs, process, thread};

use crate::files::{HOT, SEALED};
use crate::{open, tables};

/// What a recording needs to be read at all.
const META: &str = r#"{"schema": 1, "tool": "wakewalk 0.1.0"}"#;

/// The first byte chooses which file the others are: `meta.json`, or a sealed or unsealed table.
pub fn recording(bytes: &[u8]) {
    let Some((choice, content)) = bytes.split_first() else { return };
    let names: Vec<&str> = tables::all().into_iter().map(|(name, _)| name).collect();
    let name = match usize::from(*choice) {
        0 => "meta.json".to_string(),
        n if n % 2 == 0 => format!("{}.{SEALED}", names[(n - 1) / 2 % names.len()]),
        n => format!("{}.{HOT}", names[n / 2 % names.len()]),
    };
    let dir = folder();
    let _ = fs::create_dir_all(&dir); // there since the first call
    if fs::write(dir.join("meta.json"), META).is_ok() && fs::write(dir.join(&name), content).is_ok() {
        let _ = open(&dir); // refused with a sentence, or read: both are well
    }
    let _ = fs::remove_file(dir.join(&name));
}

/// One for each thread that fuzzes.
fn folder() -> PathBuf {
    env::temp_dir().join(format!("wakewalk-fuzz-{}-{:?}", process::id(), thread::current().id()))
}

/// Every recording below `fixtures`, sealed as it is and once more unsealed.
#[cfg(fuzzing)]
fn dirs_of(fixtures: &std::path::Path) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for entry in fs::read_dir(fixtures).into_iter().flatten().flatten() {
        let sealed = entry.path().join("recording");
        let unsealed = folder().join(entry.file_name());
        if let Ok(recording) = open(&sealed)
            && let Ok(mut writer) = crate::Writer::create(&unsealed, &recording.meta)
            && writer.append_all(&recording.tables).is_ok()
        {
            dirs.push(unsealed);
        }
        dirs.push(sealed);
    }
    dirs
}

/// Inputs to begin with: every file of the recordings below `fixtures`, and a small one unsealed.
#[cfg(fuzzing)]
pub fn seeds(fixtures: &std::path::Path) -> Vec<Vec<u8>> {
    let mut seeds = vec![[b"\0", META.as_bytes()].concat()];
    for (n, (name, _)) in (0_u8..).zip(tables::all()) {
        for dir in dirs_of(fixtures) {
            let sealed = fs::read(dir.join(format!("{name}.{SEALED}"))).unwrap_or_default();
            let hot = fs::read(dir.join(format!("{name}.{HOT}"))).unwrap_or_default();
            for (choice, content) in [(2 * n + 2, sealed), (2 * n + 1, hot)] {
                if (1..64 << 10).contains(&content.len()) {
                    seeds.push([vec![choice], content].concat());
                }
            }
        }
    }
    seeds
}

#[cfg(test)]
mod tests {
    /// Inputs that once crashed, hung or ate the memory.
    #[test]
    fn what_fuzzing_found() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/regressions/recording");
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            super::recording(&std::fs::read(entry.unwrap().path()).unwrap());
        }
        let _ = std::fs::remove_dir_all(super::folder());
    }
}
