// SPDX-License-Identifier: Apache-2.0
//! Names of code compiled at run time, as the runtime itself wrote them to `/tmp/perf-PID.map`.
//!
//! The file is in the process's own mount namespace and named after its pid in its own pid
//! namespace. It is opened when code of that kind is first seen and read at the end, when the
//! process may be gone. Whoever can write to `/tmp` could have put another file (or a FIFO) there:
//! it must be a regular file that belongs to the process's user or to root.

use std::{
    collections::BTreeMap,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::fs::OFlags;

use super::clip;
use crate::source::{Source, open_regular};

/// What is read of one map, and of all together. Of more, the end is read: it is the newest code.
const MAX_BYTES: u64 = 64 << 20;
const MAX_BYTES_OF_ALL: u64 = 256 << 20;

/// Functions that are kept of all maps together. Large programs have some hundred thousand, but a line
/// can be as short as six bytes: without this limit a map would fill the memory.
const MAX_FUNCTIONS: usize = 1 << 20;

/// Maps that are held open.
const MAX_OPEN: usize = 64;

/// Address spaces with such code; more have no names.
const MAX_SPACES: usize = 1 << 16;

/// Pause between attempts to open the map of one process.
const PAUSE: Duration = Duration::from_secs(1);

/// The perf maps of the address spaces seen.
pub(crate) struct PerfMaps {
    spaces: Vec<Space>,
    open: usize,
    left: Left,
}

/// What may still be read and kept.
struct Left {
    bytes: u64,
    functions: usize,
}

impl Default for PerfMaps {
    fn default() -> Self {
        let left = Left { bytes: MAX_BYTES_OF_ALL, functions: MAX_FUNCTIONS };
        Self { spaces: Vec::new(), open: 0, left }
    }
}

struct Space {
    pid: u32,
    file: Option<Source>,
    look_again: Option<Instant>,
    names: Option<Vec<Entry>>,
}

/// A compiled function.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    start: u64,
    end: u64,
    name: String,
}

impl PerfMaps {
    /// Number for a new address space, that of process `pid`.
    pub(crate) fn space(&mut self, pid: u32) -> u32 {
        if self.spaces.len() >= MAX_SPACES {
            return u32::MAX;
        }
        self.spaces.push(Space { pid, file: None, look_again: Some(Instant::now()), names: None });
        self.spaces.len() as u32 - 1
    }

    /// Opens the map if there is one by now.
    pub(crate) fn look(&mut self, space: u32) {
        let Some(space) = self.spaces.get_mut(space as usize) else { return };
        let due = space.look_again.is_some_and(|at| Instant::now() >= at);
        if due && space.file.is_none() && self.open < MAX_OPEN {
            space.file = open(space.pid);
            space.look_again = Some(Instant::now() + PAUSE);
            self.open += usize::from(space.file.is_some());
        }
    }

    /// The pid now means something else.
    pub(crate) fn end(&mut self, space: u32) {
        if let Some(space) = self.spaces.get_mut(space as usize) {
            space.look_again = None;
        }
    }

    /// Name of the function at `address`. The map is read on the first question.
    pub(crate) fn name(&mut self, space: u32, address: u64) -> Option<String> {
        if let Some(space) = self.spaces.get_mut(space as usize).filter(|s| s.names.is_none())
            && space.look_again.is_some()
        {
            space.look_again = Some(Instant::now());
            let (pid, file) = (space.pid, space.file.take());
            space.file = file.or_else(|| open(pid));
        }
        let space = self.spaces.get_mut(space as usize)?;
        let (file, left) = (&space.file, &mut self.left);
        let names = space.names.get_or_insert_with(|| file.as_ref().map(|f| read(f, left)).unwrap_or_default());
        let after = names.partition_point(|e| e.start <= address);
        let entry = names.get(after.checked_sub(1)?)?;
        (address < entry.end).then(|| entry.name.clone())
    }
}

fn open(pid: u32) -> Option<Source> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).map(str::split_whitespace);
    let inner_pid: u32 = field("NStgid:")?.next_back()?.parse().ok()?;
    let effective_user: u32 = field("Uid:")?.nth(1)?.parse().ok()?;
    let path = PathBuf::from(format!("/proc/{pid}/root/tmp/perf-{inner_pid}.map"));
    let file = open_regular(&path, OFlags::NOFOLLOW).ok()?;
    let owner = file.metadata().ok()?.uid();
    (owner == effective_user || owner == 0).then(|| Source::File(Arc::new(file)))
}

fn read(file: &Source, left: &mut Left) -> Vec<Entry> {
    let length = file.len(); // it grows
    let size = length.min(MAX_BYTES).min(left.bytes);
    let bytes = file.read(length - size, size, MAX_BYTES).unwrap_or_default();
    // The rest of a line that was cut may look like another address.
    let cut = if size < length { bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1) } else { 0 };
    let entries = parse(&bytes[cut..], left.functions);
    left.bytes -= size;
    left.functions -= entries.len();
    entries
}

/// For fuzzing: all that is done with a map.
#[cfg(any(test, fuzzing))]
pub(crate) fn use_all(bytes: &[u8]) {
    let entries = parse(bytes, MAX_FUNCTIONS);
    assert!(entries.is_sorted_by_key(|e| e.start) && entries.iter().all(|e| e.name.len() <= super::MAX_NAME_BYTES));
}

/// `start size name` in hexadecimal, a line a function; where addresses were used again, the last
/// line counts, and what was there before is gone. Of more than `limit` functions the last ones are kept.
fn parse(bytes: &[u8], limit: usize) -> Vec<Entry> {
    let entry = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let mut fields = line.splitn(3, ' ');
        let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let (start, size) = (hex(fields.next()?)?, hex(fields.next()?)?);
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some(Entry { start, end: start.checked_add(size)?, name: clip(name) }).filter(|entry| entry.start < entry.end)
    };
    let mut entries: BTreeMap<u64, Entry> = BTreeMap::new();
    for entry in bytes.rsplit(|b| *b == b'\n').filter_map(entry).take(limit) {
        // Those that stand there are newer and do not overlap each other.
        let before = entries.range(..entry.end).next_back();
        if before.is_none_or(|(_, newer)| newer.end <= entry.start) {
            entries.insert(entry.start, entry);
        }
    }
    entries.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts() {
        let map = parse(
            b"2000 10 JS:~old\n1000 20 JS:*spin /srv/a b.js:3\nnonsense\n2000 8 JS:*new\nffffffffffffffff 2 x\n30 4",
            9,
        );
        let names: Vec<&str> = map.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["JS:*spin /srv/a b.js:3", "JS:*new"]);
        assert_eq!((map[1].start, map[1].end), (0x2000, 0x2008));
    }

    #[test]
    fn what_newer_code_overlaps_is_gone() {
        let names = |map: &str| -> Vec<String> { parse(map.as_bytes(), 9).into_iter().map(|e| e.name).collect() };
        assert_eq!(names("2000 100 old\n1f00 300 new\n"), ["new"], "it covers the old one");
        assert_eq!(names("2000 1000 old\n2800 100 new\n3000 10 other\n"), ["new", "other"], "it lies within it");
        assert_eq!(names("2000 100 a\n2100 100 b\n"), ["a", "b"], "they touch");
    }

    #[test]
    fn a_hostile_map_is_bounded() {
        let many = b"1 1 a\n".repeat(100_000);
        assert_eq!(parse(&many, 10).len(), 1, "one address, whatever was kept of it");
        let different: String = (0..1000).map(|n| format!("{n:x} 1 f{n}\n")).collect();
        let kept = parse(different.as_bytes(), 10);
        assert_eq!((kept.len(), kept[0].name.as_str()), (10, "f990"), "the last lines are the newest code");
        let long = [b"10 10 ".as_slice(), &vec![b'x'; 1 << 20], &[0xff, 0x1b, b'['], b"\n"].concat();
        assert_eq!(parse(&long, 10)[0].name.len(), 512);
        use_all(b"\n\n \n0 0 \n-1 -1 a\n0x10 0x10 \x00\n10 ffffffffffffffff wraps");
    }

    #[test]
    fn all_maps_together_are_bounded() {
        let map = Source::Bytes(Arc::from(b"10 1 a\n20 1 b\n30 1 c\n".as_slice()));
        let mut left = Left { bytes: 30, functions: 4 };
        let kept: Vec<usize> = (0..3).map(|_| read(&map, &mut left).len()).collect();
        assert_eq!((kept, left.bytes), (vec![3, 1, 0], 0), "nine bytes of the second, none of the third");
    }

    #[test]
    fn questions_about_nothing() {
        let mut maps = PerfMaps::default();
        assert_eq!(maps.name(3, 1), None);
        let space = maps.space(u32::MAX);
        maps.look(space);
        assert_eq!(maps.name(space, 0), None);
    }
}
