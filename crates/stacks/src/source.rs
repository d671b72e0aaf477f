// SPDX-License-Identifier: Apache-2.0
//! Where the bytes of a binary come from: a file of the observed process, or a copy of its vdso.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
};

use object::read::ReadCacheOps;
use rustix::fs::OFlags;

/// Bytes that are only ever read with a bound; never mapped, because the owner may truncate them.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    File(Arc<File>),
    Bytes(Arc<[u8]>),
}

/// Opens a regular file whose path the observed process chose: it may be a FIFO (would block) or
/// a device (opening it may do something), so it is looked at first and opened without waiting.
pub(crate) fn open_regular(path: &Path, extra: OFlags) -> io::Result<File> {
    let is_file = |meta: &std::fs::Metadata| if meta.is_file() { Ok(()) } else { Err(io::ErrorKind::InvalidInput) };
    is_file(&std::fs::metadata(path)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | extra;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    is_file(&file.metadata()?)?;
    Ok(file)
}

impl Source {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Source::File(file) => file.metadata().map_or(0, |m| m.size()),
            Source::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Exactly `size` bytes at `offset`; `None` if they are not there or are more than `limit`.
    pub(crate) fn read(&self, offset: u64, size: u64, limit: u64) -> Option<Vec<u8>> {
        if size > limit || offset.checked_add(size)? > self.len() {
            return None;
        }
        let size = usize::try_from(size).ok()?;
        match self {
            Source::File(file) => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(size).ok()?;
                bytes.resize(size, 0);
                file.read_exact_at(&mut bytes, offset).ok()?;
                Some(bytes)
            }
            Source::Bytes(bytes) => {
                let start = usize::try_from(offset).ok()?;
                Some(bytes.get(start..start.checked_add(size)?)?.to_vec())
            }
        }
    }

    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor { source: self, at: 0 }
    }
}

/// A position in a source, for the ELF reader.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    source: &'a Source,
    at: u64,
}

impl ReadCacheOps for Cursor<'_> {
    fn len(&mut self) -> Result<u64, ()> {
        Ok(self.source.len())
    }

    fn seek(&mut self, pos: u64) -> Result<u64, ()> {
        self.at = pos;
        Ok(pos)
    }

    fn read(&mut self, buf: &mut [u8]) -> Result<usize, ()> {
        let left = self.source.len().saturating_sub(self.at);
        let size = left.min(buf.len() as u64) as usize;
        self.read_exact(&mut buf[..size]).map(|()| size)
    }

    fn read_exact(&mut self, buf: &mut [u8]) -> Result<(), ()> {
        let size = buf.len() as u64;
        let bytes = self.source.read(self.at, size, size).ok_or(())?;
        buf.copy_from_slice(&bytes);
        self.at += size;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_and_allowed() {
        let source = Source::Bytes(Arc::from([1_u8, 2, 3, 4].as_slice()));
        assert_eq!(source.read(1, 2, 8), Some(vec![2, 3]));
        assert_eq!(source.read(1, 2, 1), None);
        assert_eq!(source.read(3, 2, 8), None);
        assert_eq!(source.read(u64::MAX, 2, 8), None);
    }

    #[test]
    fn a_fifo_or_a_device_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
        assert!(open_regular(&fifo, OFlags::empty()).is_err());
        assert!(open_regular(Path::new("/dev/zero"), OFlags::empty()).is_err());
    }
}
