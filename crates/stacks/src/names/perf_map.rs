// SPDX-License-Identifier: Apache-2.0
//! Names of code compiled at run time, as the runtime itself wrote them to `/tmp/perf-PID.map`.
//!
//! The file is in the process's own mount namespace and named after its pid in its own pid
//! namespace. It is opened when code of that kind is first seen and read at the end, when the
//! process may be gone. Whoever can write to `/tmp` could have put another file (or a FIFO) there:
//! it must be a regular file that belongs to the process's user or to root.

use std::{
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::fs::OFlags;

use super::clip;
use crate::source::{Source, open_regular};

/// Largest map that is read; more is cut off.
const MAX_BYTES: u64 = 64 << 20;

/// Maps that are held open.
const MAX_OPEN: usize = 64;

/// Address spaces with such code; more have no names.
const MAX_SPACES: usize = 1 << 16;

/// Pause between attempts to open the map of one process.
const PAUSE: Duration = Duration::from_secs(1);

/// The perf maps of the address spaces seen.
#[derive(Default)]
pub(crate) struct PerfMaps {
    spaces: Vec<Space>,
    open: usize,
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
        let file = &space.file;
        let names = space.names.get_or_insert_with(|| file.as_ref().map(read).unwrap_or_default());
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

fn read(file: &Source) -> Vec<Entry> {
    let size = file.len().min(MAX_BYTES);
    let bytes = file.read(0, size, MAX_BYTES).unwrap_or_default();
    parse(&bytes)
}

/// `start size name` in hexadecimal, a line a function; where addresses were used again, the last
/// line counts.
fn parse(bytes: &[u8]) -> Vec<Entry> {
    let entry = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let mut fields = line.splitn(3, ' ');
        let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let (start, size) = (hex(fields.next()?)?, hex(fields.next()?)?);
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some(Entry { start, end: start.checked_add(size)?, name: clip(name) })
    };
    let mut entries: Vec<Entry> = bytes.split(|b| *b == b'\n').filter_map(entry).collect();
    entries.reverse();
    entries.sort_by_key(|e| e.start);
    entries.dedup_by_key(|e| e.start);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts() {
        let map = parse(
            b"2000 10 JS:~old\n1000 20 JS:*spin /srv/a b.js:3\nnonsense\n2000 8 JS:*new\nffffffffffffffff 2 x\n30 4",
        );
        let names: Vec<&str> = map.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["JS:*spin /srv/a b.js:3", "JS:*new"]);
        assert_eq!((map[1].start, map[1].end), (0x2000, 0x2008));
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
