// SPDX-License-Identifier: Apache-2.0
//! Sections of debug information, unpacked, with a bound on what they may unpack to.

use std::io::Read;

use flate2::bufread::ZlibDecoder;
use object::elf::{ELFCOMPRESS_ZLIB, SHF_COMPRESSED};

use crate::{elf::Layout, source::Source};

/// Size of the header of a compressed section: type, padding, size and alignment of the content.
const HEADER_BYTES: usize = 24;

/// Reads sections until the bytes they take are used up.
pub(super) struct Budget {
    pub(super) bytes_left: u64,
}

impl Budget {
    /// The section called `name`: `Some(empty)` if there is none, `None` if it is too large.
    pub(super) fn read(&mut self, source: &Source, layout: &Layout, name: &str) -> Option<Vec<u8>> {
        let Some(section) = layout.section(name) else { return Some(Vec::new()) };
        if section.kind == object::elf::SHT_NOBITS.0 {
            return Some(Vec::new());
        }
        let raw = source.read(section.offset, section.size, self.bytes_left)?;
        let compressed = section.flags & SHF_COMPRESSED.0 != 0;
        let bytes = if compressed { inflate(&raw, self.bytes_left)? } else { raw };
        self.bytes_left = self.bytes_left.checked_sub(bytes.len() as u64)?;
        Some(bytes)
    }
}

/// Unpacks at most `limit` bytes, whatever the header claims; only zlib.
fn inflate(section: &[u8], limit: u64) -> Option<Vec<u8>> {
    let (header, content) = section.split_at_checked(HEADER_BYTES)?;
    if header[..4] != ELFCOMPRESS_ZLIB.0.to_le_bytes() {
        return None;
    }
    let mut bytes = Vec::new();
    ZlibDecoder::new(content).take(limit.checked_add(1)?).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= limit).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::inflate;
    use flate2::{Compression, write::ZlibEncoder};
    use std::io::Write;

    #[test]
    fn a_bomb_does_not_go_off() {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
        let content = encoder.finish().unwrap();
        let mut section = vec![0; 24];
        section[0] = 1;
        section[8..16].fill(0xff); // claims 2^64 bytes
        section.extend(content);
        assert_eq!(inflate(&section, 1 << 20).map(|b| b.len()), Some(1 << 20));
        assert_eq!(inflate(&section, (1 << 20) - 1), None);
        section[0] = 2;
        assert_eq!(inflate(&section, 1 << 20), None, "zstd is not read");
        assert_eq!(inflate(&[1, 0, 0], 10), None);
    }
}
