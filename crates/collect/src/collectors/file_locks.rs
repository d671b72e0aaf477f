// SPDX-License-Identifier: Apache-2.0
//! Who has a lock on a file before which the target stands. A wait that ends tells who ended it; one that does not is told by
//! the kernel's list of locks alone, which is read once, at the end.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::mem::take;

use anyhow::Result;
use recording::Tables;
use recording::tables::FileLock;

use crate::collector::{Collector, Kind, Shared, SliceEnd};
use crate::proc::Proc;

/// It needs nothing that a kernel could refuse: without the list nothing is said of locks on files.
pub const KIND: Kind = Kind {
    gap: "file_lock",
    facility: None,
    tables: |_| (),
    start: |_, _| Ok(Box::new(FileLocks::default())),
};

/// Some ten thousand locks; a host with more has its list cut off.
const MOST_BYTES: u64 = 1 << 20;
/// Locks that are told, those with most who wait first: more than one or two at a time are none of a hang.
const MOST_LOCKS: usize = 8;
/// Descriptors that are asked which file they have locked, over all locks.
const MOST_DESCRIPTORS: usize = 8192;

/// The kernel's list of locks at the end, as text.
#[derive(Default)]
struct FileLocks(String);

impl Collector for FileLocks {
    fn read(&mut self, shared: &Shared<'_>, end: &SliceEnd) {
        if end.last {
            self.0 = list(&Proc::new(&shared.plan.root));
        }
    }

    /// Finds who is meant: a search through descriptors, which can stand back behind others.
    fn slice(&mut self, shared: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let target = end.living.iter().map(|row| row.tgid).collect();
        let rows = held(&Proc::new(&shared.plan.root), &take(&mut self.0), &target, end.t_ns);
        if !rows.is_empty() {
            tables.extend(rows);
        }
        Ok(())
    }
}

fn list(proc: &Proc) -> String {
    let mut text = String::new();
    let Ok(file) = File::open(proc.path("locks")) else { return text };
    // What was read is whole lines but for the last.
    let _ = file.take(MOST_BYTES).read_to_string(&mut text);
    text
}

/// Locks before which processes of the target stand.
fn held(proc: &Proc, list: &str, target: &HashSet<u32>, t_ns: u64) -> Vec<FileLock> {
    let mut room = MOST_DESCRIPTORS;
    let row = |(lock, waiting): (Line<'_>, u32)| {
        let (pid, path) = holder(proc, &lock, &mut room);
        let comm = comm(proc, pid).unwrap_or_default();
        FileLock { t_ns, kind: lock.kind.into(), pid, comm, path, inode: lock.inode().unwrap_or(0), waiting }
    };
    awaited(list, target).into_iter().map(row).collect()
}

fn comm(proc: &Proc, pid: u32) -> Option<String> {
    proc.text(pid, "comm").map(|comm| comm.trim_end().to_string())
}

/// Who has the lock, and on what file. The list names who asked for it; a shell has it done by a program that is gone, and an open
/// file's lock has no process at all: then it is who has it among the locks of its descriptors.
fn holder(proc: &Proc, lock: &Line<'_>, room: &mut usize) -> (u32, String) {
    if comm(proc, lock.pid).is_some() {
        return (lock.pid, path(proc, lock.pid, lock, room).unwrap_or_default());
    }
    let mut all = proc.pids().into_iter();
    all.find_map(|pid| Some((pid, path(proc, pid, lock, room)?))).unwrap_or_default()
}

/// A line of the list.
struct Line<'t> {
    /// Number of the lock; those who wait for it have the same.
    lock: &'t str,
    waits: bool,
    kind: &'t str,
    pid: u32,
    /// `fe:00:5678`, device and inode.
    file: &'t str,
}

impl Line<'_> {
    fn inode(&self) -> Option<u64> {
        self.file.rsplit(':').next()?.parse().ok()
    }
}

/// `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`, with `->` behind the number of one who waits.
fn line(text: &str) -> Option<Line<'_>> {
    let mut words = text.split_whitespace().peekable();
    let lock = words.next()?.strip_suffix(':')?;
    let waits = words.next_if_eq(&"->").is_some();
    let (kind, _, _) = (words.next()?, words.next()?, words.next()?);
    // -1 where it is an open file's.
    let pid = words.next()?.parse::<i64>().ok()?.try_into().unwrap_or(0);
    Some(Line { lock, waits, kind, pid, file: words.next()? })
}

/// Locks before which processes of the target stand, and how many of their threads.
fn awaited<'t>(text: &'t str, target: &HashSet<u32>) -> Vec<(Line<'t>, u32)> {
    let mut waiting: HashMap<&str, u32> = HashMap::new();
    let lines: Vec<Line<'_>> = text.lines().filter_map(line).collect();
    for line in lines.iter().filter(|line| line.waits && target.contains(&line.pid)) {
        *waiting.entry(line.lock).or_default() += 1;
    }
    let held = lines.into_iter().filter(|line| !line.waits);
    let mut locks: Vec<_> = held.filter_map(|line| Some((waiting.get(line.lock).copied()?, line))).collect();
    locks.sort_by_key(|(waiting, _)| std::cmp::Reverse(*waiting));
    locks.into_iter().take(MOST_LOCKS).map(|(waiting, line)| (line, waiting)).collect()
}

/// The file that a process has locked, by the locks of its descriptors, of which no more than `room` are asked.
fn path(proc: &Proc, pid: u32, wanted: &Line<'_>, room: &mut usize) -> Option<String> {
    let entries = fs::read_dir(proc.of(pid, "fdinfo")).ok()?.flatten();
    let entries = entries.take_while(|_| room.checked_sub(1).inspect(|left| *room = *left).is_some());
    let is_it = |text: &str| {
        let locks = text.lines().filter_map(|text| line(text.strip_prefix("lock:")?.trim_start()));
        locks.into_iter().any(|lock| (lock.file, lock.kind) == (wanted.file, wanted.kind))
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
        let locks = format!(
            "{own}\n1: -> FLOCK  ADVISORY  WRITE 7 fe:00:77 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 7 fe:00:77 0 EOF\n\
             1: -> FLOCK  ADVISORY  WRITE 8 fe:00:77 0 EOF\n2: POSIX  ADVISORY  READ  7 00:1f:78 0 EOF\n\
             3: OFDLCK ADVISORY  WRITE -1 fe:00:79 0 EOF\n3: -> OFDLCK ADVISORY  WRITE 7 fe:00:79 0 EOF\nnonsense"
        );
        root.file("proc/locks", locks).process(50, 1, "backup").file("proc/50/comm", "backup\n");
        root.file("proc/50/fdinfo/3", "pos:\t0\n").file("proc/50/fdinfo/4", format!("pos:\t0\nlock:\t{own}\n"));
        root.link("proc/50/fd/3", "/dev/null").link("proc/50/fd/4", "/var/lib/svc.lock");
        let rows = || {
            let proc = Proc::new(root.path());
            held(&proc, &list(&proc), &[7].into(), 9)
        };
        let told: Vec<_> = rows().into_iter().map(|r| (r.pid, r.comm, r.path, r.inode, r.waiting)).collect();
        let backup = (50, "backup".to_string(), "/var/lib/svc.lock".to_string());
        assert_eq!(told[0], (backup.0, backup.1.clone(), backup.2.clone(), 77, 2));
        assert_eq!(told[1], (0, String::new(), String::new(), 79, 1));
        let gone = own.replace(" 50 ", " 49 ");
        root.file("proc/locks", format!("{gone}\n1: -> FLOCK  ADVISORY  WRITE 7 fe:00:77 0 EOF\n"));
        assert_eq!((rows()[0].pid, rows()[0].path.clone()), (backup.0, backup.2), "the one that has it open");
        root.file("proc/50/fdinfo/4", format!("lock:\t{}\n", own.replace("fe:00", "fe:01")));
        assert_eq!(rows()[0].pid, 0, "a file of the same number on another device");
        root.file("proc/locks", own);
        assert!(rows().is_empty(), "nobody waits");
        assert!(list(&Proc::new(FakeRoot::new().path())).is_empty());
    }
}
