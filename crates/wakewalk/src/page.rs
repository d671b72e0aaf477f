// SPDX-License-Identifier: Apache-2.0
//! Pages as files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a page; half of one does not stay.
///
/// # Errors
/// The disk is full, or the file may not be written.
pub fn write(file: &Path, page: &str) -> Result<()> {
    fs::write(file, page)
        .inspect_err(|_| remove_half(file))
        .with_context(|| format!("failed to write the page `{}`", file.display()))
}

/// Half a page is none; but it may be a device that was written to.
fn remove_half(page: &Path) {
    if page.is_file() {
        let _ = fs::remove_file(page); // the error that is on its way says more
    }
}
