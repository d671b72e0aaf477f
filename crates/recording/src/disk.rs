// SPDX-License-Identifier: Apache-2.0
//! Files of a recording, which may come from anybody: read with bounds, and what goes wrong said once,
//! in a sentence with the remedy.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Error, Result, anyhow, bail};

use crate::meta::Sum;

/// Largest file that is read: an hour of a large machine has some hundred megabytes a table.
const MAX_BYTES: u64 = 4 << 30;

/// A regular file, opened: a FIFO in its place would wait for ever.
///
/// # Errors
/// There is none, or it is something else, or too large.
pub(crate) fn open(path: &Path) -> Result<File> {
    let size = |meta: std::fs::Metadata| meta.is_file().then_some(meta.len());
    if let Ok(meta) = std::fs::metadata(path)
        && size(meta).is_none_or(|bytes| bytes > MAX_BYTES)
    {
        bail!("`{}` is no file of a recording", path.display());
    }
    open_own(path)
}

/// A file that this process has written, however large: weeks of a table, before they are packed.
pub(crate) fn open_own(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("failed to open `{}`", path.display()))
}

/// A file of at most `limit` bytes; more is an error.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        bail!("`{}` is larger than any that wakewalk writes", path.display());
    }
    Ok(content)
}

/// Size and checksum of a file.
pub(crate) fn sum(path: &Path) -> Result<Sum> {
    let (mut file, mut sum, mut hasher) = (open(path)?, Sum::default(), crc32fast::Hasher::new());
    let mut piece = vec![0; 64 << 10];
    loop {
        let length = file.read(&mut piece).with_context(|| format!("failed to read `{}`", path.display()))?;
        if length == 0 {
            sum.crc32 = hasher.finalize();
            return Ok(sum);
        }
        hasher.update(&piece[..length]);
        sum.bytes += length as u64;
    }
}

/// What a failed write means, said once: encoders wrap an error of the disk and repeat its words.
pub(crate) fn failed(doing: &str, dir: &Path, error: impl Into<Error>) -> Error {
    let error = error.into();
    let full = |e: &&io::Error| matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let of_disk = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    if of_disk.filter(full).is_some() {
        return anyhow!(
            "failed to {doing}: the disk of `{}` is full; free some space there, or name a folder on another disk \
             (--save DIR, or TMPDIR for a recording that is not kept)",
            dir.display()
        );
    }
    anyhow!("failed to {doing} in `{}`: {}", dir.display(), error.root_cause())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_once() {
        let wrapped = Error::from(io::Error::from_raw_os_error(28)).context("Io error: No space left on device");
        let said = format!("{:#}", failed("write table `x`", Path::new("/d"), wrapped));
        assert!(said.contains("the disk of `/d` is full; free") && !said.contains("os error"), "{said}");
        let other = format!("{:#}", failed("write", Path::new("/d"), io::Error::from_raw_os_error(5)));
        assert_eq!(other.matches("os error 5").count(), 1, "{other}");
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        assert!(open(Path::new("/dev/zero")).is_err() && open(Path::new("/tmp")).is_err());
    }
}
