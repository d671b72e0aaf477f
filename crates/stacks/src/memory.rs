// SPDX-License-Identifier: Apache-2.0
//! A piece of a process's memory: the copy that came with the sample, or one read afterwards.

use std::{borrow::Cow, fs::File, os::unix::fs::FileExt};

/// Bytes and the address they were at.
pub(crate) struct Memory<'a> {
    start: u64,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Memory<'a> {
    pub(crate) fn new(start: u64, bytes: &'a [u8]) -> Self {
        Memory { start, bytes: Cow::Borrowed(bytes) }
    }

    /// Reads `length` bytes at `start` through `/proc/PID/mem`; all of them or nothing.
    pub(crate) fn read(mem: &File, start: u64, length: usize) -> Option<Memory<'static>> {
        let mut bytes = vec![0; length];
        mem.read_exact_at(&mut bytes, start).ok()?;
        Some(Memory { start, bytes: Cow::Owned(bytes) })
    }

    /// The word at `address`, if all of it is in this piece.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let word = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;

    #[test]
    fn a_word_must_be_whole() {
        let memory = Memory::new(u64::MAX - 15, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(memory.word(u64::MAX - 15), Some(1));
        assert_eq!(memory.word(u64::MAX - 7), None, "one byte is missing");
        assert_eq!(memory.word(0), None);
        assert_eq!(memory.word(u64::MAX), None);
    }
}
