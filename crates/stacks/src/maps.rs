// SPDX-License-Identifier: Apache-2.0
//! `/proc/PID/maps`: which addresses are code, and of which file.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
};

/// Most of the file that is read; a process can have 65,530 mappings with long paths.
const MAX_BYTES: u64 = 16 << 20;

/// An executable mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Offset of `start` in the file.
    pub(crate) offset: u64,
    /// Device and inode as the kernel prints them; inode 0 = no file.
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
    /// Path, or a name such as `[vdso]`, or nothing.
    pub(crate) path: String,
}

/// Reads the executable mappings of a process, in the order of their addresses.
pub(crate) fn read(pid: u32) -> io::Result<Vec<Mapping>> {
    parse(BufReader::new(File::open(format!("/proc/{pid}/maps"))?.take(MAX_BYTES)))
}

pub(crate) fn parse(mut lines: impl BufRead) -> io::Result<Vec<Mapping>> {
    let mut mappings: Vec<Mapping> = Vec::new();
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        // A path may hold any byte but the newline.
        let text = String::from_utf8_lossy(&line);
        if let Some(mapping) = mapping(&text)
            && mappings.last().is_none_or(|last| last.end <= mapping.start)
        {
            mappings.push(mapping);
        }
        line.clear();
    }
    Ok(mappings)
}

/// `start-end rwxp offset major:minor inode path`
fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.trim_end_matches('\n').splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    if fields.next()?.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let offset = fields.next()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode = fields.next()?;
    let path = fields.next().unwrap_or_default().trim_start();
    let hex = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        offset: hex(offset)?,
        device: (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?),
        inode: inode.parse().ok()?,
        path: path.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code() {
        let text = "\
55d0c0000000-55d0c0001000 r--p 00000000 fe:00 1234                       /usr/bin/a b
55d0c0001000-55d0c0003000 r-xp 00001000 fe:1a 1234                       /usr/bin/a b (deleted)
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0                          [vdso]
nonsense
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";
        let mappings = parse(text.as_bytes()).unwrap();
        let paths: Vec<&str> = mappings.iter().map(|m| m.path.as_str()).collect();
        assert_eq!(paths, ["/usr/bin/a b (deleted)", "", "[vdso]", "[vsyscall]"]);
        let first = &mappings[0];
        assert_eq!(
            (first.start, first.offset, first.device, first.inode),
            (0x55d0_c000_1000, 0x1000, (0xfe, 0x1a), 1234)
        );
    }
}
