// SPDX-License-Identifier: Apache-2.0
//! Who has a lock on a file before which the target stands. A wait that ends tells who ended it; one that does not is told by
//! the kernel's list of locks alone, which is read once, at the end.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::mem::take;
use std::path::Path;

use anyhow::Result;
use recording::Writer;
use recording::tables::FileLock;

use crate::collector::{Collector, Kind, Shared, SliceEnd};
use crate::proc::Proc;

/// It needs nothing that a kernel could refuse: without the list nothing is said of locks on files.
pub const KIND: Kind = Kind {
    gap: "file_lock",
    facility: None,
    tables: |_| Ok(()),
    start: |_, _| Ok(Box::new(FileLocks::default())),
};

/// Some ten thousand locks; a host with more has its list cut off.
const MOST_BYTES: u64 = 1 << 20;
/// Descriptors that are asked which file they have locked: of one process, or of all until it is found.
const MOST_DESCRIPTORS: usize = 8192;

/// The locks at the end.
#[derive(Default)]
struct FileLocks(Vec<FileLock>);

impl Collector for FileLocks {
    fn read(&mut self, shared: &Shared<'_>, end: &SliceEnd) {
        if end.last {
            let target = end.living.iter().map(|row| row.tgid).collect();
            self.0 = held(&shared.plan.root, &target, end.t_ns);
        }
    }

    fn slice(&mut self, _: &mut Shared<'_>, _: &SliceEnd, writer: &mut Writer) -> Result<()> {
        let rows = take(&mut self.0);
        if rows.is_empty() { Ok(()) } else { writer.append(&rows) }
    }
}

/// Locks before which processes of the target stand.
fn held(root: &Path, target: &HashSet<u32>, t_ns: u64) -> Vec<FileLock> {
    let proc = Proc::new(root);
    let mut text = String::new();
    let Ok(file) = File::open(proc.path("locks")) else { return Vec::new() };
    // What was read is whole lines but for the last.
    let _ = file.take(MOST_BYTES).read_to_string(&mut text);
    let mut rows = awaited(&text, target);
    for row in &mut rows {
        row.t_ns = t_ns;
        find(&proc, row);
    }
    rows
}

/// Finds who has the lock, and on what file. The list names who asked for it; a shell has it done by a program that is gone, and
/// an open file's lock has no process at all: then it is who has it among the locks of its descriptors.
fn find(proc: &Proc, row: &mut FileLock) {
    let comm = |pid| proc.text(pid, "comm").map(|comm| comm.trim_end().to_string());
    let mut room = MOST_DESCRIPTORS;
    if let Some(comm) = comm(row.pid) {
        (row.comm, row.path) = (comm, path(proc, row.pid, row, &mut room).unwrap_or_default());
        return;
    }
    let mut all = proc.pids().into_iter();
    let found = all.find_map(|pid| Some((pid, path(proc, pid, row, &mut room)?)));
    (row.pid, row.path) = found.unwrap_or_default();
    row.comm = comm(row.pid).unwrap_or_default();
}

/// A line of the list.
struct Line<'t> {
    /// Number of the lock; those who wait for it have the same.
    lock: &'t str,
    waits: bool,
    kind: &'t str,
    pid: u32,
    inode: u64,
}

/// `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`, with `->` behind the number of one who waits.
fn line(text: &str) -> Option<Line<'_>> {
    let mut words = text.split_whitespace().peekable();
    let lock = words.next()?.strip_suffix(':')?;
    let waits = words.next_if_eq(&"->").is_some();
    let (kind, _, _) = (words.next()?, words.next()?, words.next()?);
    // -1 where it is an open file's.
    let pid = words.next()?.parse::<i64>().ok()?.try_into().unwrap_or(0);
    let inode = words.next()?.rsplit(':').next()?.parse().ok()?;
    Some(Line { lock, waits, kind, pid, inode })
}

fn awaited(text: &str, target: &HashSet<u32>) -> Vec<FileLock> {
    let mut waiting: HashMap<&str, u32> = HashMap::new();
    let lines: Vec<Line<'_>> = text.lines().filter_map(line).collect();
    for line in lines.iter().filter(|line| line.waits && target.contains(&line.pid)) {
        *waiting.entry(line.lock).or_default() += 1;
    }
    let row = |line: &Line<'_>| {
        let waiting = *waiting.get(line.lock)?;
        Some(FileLock { kind: line.kind.into(), pid: line.pid, inode: line.inode, waiting, ..FileLock::default() })
    };
    lines.iter().filter(|line| !line.waits).filter_map(row).collect()
}

/// The file that a process has locked, by the locks of its descriptors, of which no more than `room` are asked.
fn path(proc: &Proc, pid: u32, row: &FileLock, room: &mut usize) -> Option<String> {
    let entries = fs::read_dir(proc.of(pid, "fdinfo")).ok()?.flatten();
    let entries = entries.take_while(|_| room.checked_sub(1).inspect(|left| *room = *left).is_some());
    let is_it = |text: &str| {
        let locks = text.lines().filter_map(|text| line(text.strip_prefix("lock:")?.trim_start()));
        locks.into_iter().any(|lock| lock.inode == row.inode && lock.kind == row.kind)
    };
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let descriptor = names.find(|name| proc.text(pid, &format!("fdinfo/{name}")).is_some_and(|text| is_it(&text)))?;
    let link = fs::read_link(proc.of(pid, &format!("fd/{descriptor}"))).ok()?;
    Some(link.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn who_has_the_lock_before_which_the_target_stands() {
        let root = FakeRoot::new();
        let own = "1: FLOCK  ADVISORY  WRITE 50 fe:00:77 0 EOF";
        let list = format!(
            "{own}\n1: -> FLOCK  ADVISORY  WRITE 7 fe:00:77 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 7 fe:00:77 0 EOF\n\
             1: -> FLOCK  ADVISORY  WRITE 8 fe:00:77 0 EOF\n2: POSIX  ADVISORY  READ  7 00:1f:78 0 EOF\n\
             3: OFDLCK ADVISORY  WRITE -1 fe:00:79 0 EOF\n3: -> OFDLCK ADVISORY  WRITE 7 fe:00:79 0 EOF\nnonsense"
        );
        root.file("proc/locks", list).process(50, 1, "backup").file("proc/50/comm", "backup\n");
        root.file("proc/50/fdinfo/3", "pos:\t0\n").file("proc/50/fdinfo/4", format!("pos:\t0\nlock:\t{own}\n"));
        root.link("proc/50/fd/3", "/dev/null").link("proc/50/fd/4", "/var/lib/svc.lock");
        let rows = held(root.path(), &[7].into(), 9);
        let told: Vec<_> = rows.iter().map(|r| (r.pid, r.comm.as_str(), r.path.as_str(), r.waiting)).collect();
        assert_eq!(told, [(50, "backup", "/var/lib/svc.lock", 2), (0, "", "", 1)]);
        let gone = own.replace(" 50 ", " 49 ");
        root.file("proc/locks", format!("{gone}\n1: -> FLOCK  ADVISORY  WRITE 7 fe:00:77 0 EOF\n"));
        let rows = held(root.path(), &[7].into(), 9);
        assert_eq!((rows[0].pid, rows[0].path.as_str()), (50, "/var/lib/svc.lock"), "the one that has it open");
        assert!(held(root.path(), &[51].into(), 9).is_empty());
        assert!(held(FakeRoot::new().path(), &[7].into(), 9).is_empty());
    }
}
