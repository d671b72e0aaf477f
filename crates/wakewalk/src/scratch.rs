// SPDX-License-Identifier: Apache-2.0
//! A folder for a recording that is not to be kept.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};
use tempfile::TempDir;

/// A folder that is gone when it is dropped: where temporary files belong, or, in a root directory that has no such
/// place, in memory or where we stand.
pub fn folder() -> Result<TempDir> {
    let first = env::temp_dir();
    let places = [first.clone(), PathBuf::from("/dev/shm"), PathBuf::from("/run"), PathBuf::from(".")];
    let made = places.iter().find_map(|place| tempfile::tempdir_in(place).ok());
    made.map_or_else(|| tempfile::tempdir_in(&first), Ok).with_context(|| {
        format!("failed to make a folder for the recording in `{}`; set TMPDIR to a folder with room", first.display())
    })
}
