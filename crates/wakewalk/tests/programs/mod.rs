// SPDX-License-Identifier: Apache-2.0
//! Programs that tests start from a place of their own.

use std::path::Path;
use std::process::Command;

/// Copies a program, in a process of its own: with `fs::copy` the file would be open for writing in this process, a
/// child that another test forks at that moment inherits that, and starting the copy fails with ETXTBSY.
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp").arg(from.as_ref()).arg(to.as_ref()).status().unwrap();
    assert!(copied.success(), "cp {} {}", from.as_ref().display(), to.as_ref().display());
}
