// SPDX-License-Identifier: Apache-2.0
//! `/proc` under any root: the one place that knows the paths and survives processes that vanish.
//!
//! Every reader returns `None` or nothing for a process that has gone in between; that is the
//! normal course of things and never an error. Names and command lines come from users: they may hold
//! blanks, parentheses, newlines or bytes that are no UTF-8.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use procfs::FromRead;
pub use procfs::process::Stat;

/// The kernel's flag of a kernel thread in field 9 of `/proc/PID/stat` (include/linux/sched.h).
const PF_KTHREAD: u32 = 0x0020_0000;
/// A command line may be megabytes long; a table needs its beginning.
const CMDLINE_BYTES: u64 = 4096;
/// Descriptors of one process that are looked at.
const DESCRIPTORS: usize = 1 << 16;
/// More CPUs than any kernel can have (NR_CPUS is at most 8192): a bound on damaged text.
const CPUS: usize = 1 << 16;

/// `/proc` of a root directory.
#[derive(Clone, Debug)]
pub struct Proc {
    root: PathBuf,
}

impl Proc {
    /// `/proc` below `root`, which is `/` outside of tests.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// The root directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Path of a file below `/proc`.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join("proc").join(relative)
    }

    /// Path of a process's file.
    pub fn of(&self, pid: u32, name: &str) -> PathBuf {
        self.path(format!("{pid}/{name}"))
    }

    /// A process's file as text; bytes that are no UTF-8 become U+FFFD.
    pub fn text(&self, pid: u32, name: &str) -> Option<String> {
        text(&self.of(pid, name))
    }

    /// All processes, ascending.
    pub fn pids(&self) -> Vec<u32> {
        numbers(&self.path(""))
    }

    /// This process.
    pub fn own_pid(&self) -> Option<u32> {
        fs::read_link(self.path("self")).ok()?.to_str()?.parse().ok()
    }

    /// Threads of a process, ascending.
    pub fn tasks(&self, pid: u32) -> Vec<u32> {
        numbers(&self.of(pid, "task"))
    }

    /// `/proc/PID/stat`, parsed from the last parenthesis.
    pub fn stat(&self, pid: u32) -> Option<Stat> {
        Stat::from_file(self.of(pid, "stat")).ok()
    }

    /// The same file of one thread.
    pub fn stat_of_thread(&self, pid: u32, tid: u32) -> Option<Stat> {
        Stat::from_file(self.of(pid, &format!("task/{tid}/stat"))).ok()
    }

    /// The executable as the process's own mount namespace names it; empty = unreadable.
    pub fn exe(&self, pid: u32) -> String {
        fs::read_link(self.of(pid, "exe")).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Arguments joined by blanks, at most 4 KiB of them.
    pub fn cmdline(&self, pid: u32) -> String {
        let mut bytes = Vec::new();
        if let Ok(file) = File::open(self.of(pid, "cmdline")) {
            // A process that ends while we read leaves what was read so far, which may be nothing.
            let _ = file.take(CMDLINE_BYTES).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end().to_string()
    }

    /// Identity of a namespace, `net:[4026531840]`.
    pub fn namespace(&self, pid: &str, kind: &str) -> Option<String> {
        let link = fs::read_link(self.path(format!("{pid}/ns/{kind}"))).ok()?;
        Some(link.to_string_lossy().into_owned())
    }

    /// Value of one line of `/proc/PID/status`.
    pub fn status(&self, pid: u32, key: &str) -> Option<String> {
        field(&self.text(pid, "status")?, key).map(str::to_string)
    }

    /// Process id within the innermost pid namespace; the same as `pid` outside of containers.
    pub fn inner_pid(&self, pid: u32) -> u32 {
        let chain = self.status(pid, "NSpid").unwrap_or_default();
        chain.split_whitespace().last().and_then(|inner| inner.parse().ok()).unwrap_or(pid)
    }

    /// Inodes of the sockets that a process holds. Of a million descriptors the first are looked at: a
    /// listener is opened before its connections.
    pub fn socket_inodes(&self, pid: u32) -> HashSet<u64> {
        let entries = fs::read_dir(self.of(pid, "fd")).into_iter().flatten().flatten();
        entries.take(DESCRIPTORS).filter_map(|entry| socket_inode(&fs::read_link(entry.path()).ok()?)).collect()
    }
}

/// Whether a process is a thread of the kernel itself.
pub fn is_kernel_thread(stat: &Stat) -> bool {
    stat.flags & PF_KTHREAD != 0
}

/// Whether a process has ended and only waits for its parent to collect it. Where only its first thread has, the others go on.
pub fn is_dead(stat: &Stat) -> bool {
    matches!(stat.state, 'Z' | 'X' | 'x') && stat.num_threads <= 1
}

/// A whole file as text; bytes that are no UTF-8 become U+FFFD.
pub fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned())
}

/// Value of a `Key:<blank>value` line.
pub fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':').map(str::trim))
}

/// A list of CPUs as the kernel writes it, `0-3,8`.
pub fn cpu_list(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(from), Ok(to)) = (from.parse::<u32>(), to.parse::<u32>()) {
            cpus.extend((from..=to).take(CPUS));
        }
    }
    cpus
}

/// `socket:[1586]` -> 1586.
fn socket_inode(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Entries of a directory whose names are numbers, ascending.
fn numbers(dir: &Path) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn a_hostile_name_does_not_shift_the_fields() {
        let root = FakeRoot::new();
        for (pid, comm) in [(7, "a) R 1 (b"), (8, "two\nlines"), (9, "\u{fffd}("), (10, ")")] {
            root.process(pid, 3, comm);
            let stat = Proc::new(root.path()).stat(pid).unwrap();
            assert_eq!((stat.comm.as_str(), stat.ppid, stat.state), (comm, 3, 'S'), "{comm:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_readable() {
        let root = FakeRoot::new();
        root.process(7, 1, "x");
        root.file("proc/7/cmdline", b"srv\0--name\0\xff\xfe\0".as_slice());
        assert_eq!(Proc::new(root.path()).cmdline(7), "srv --name \u{fffd}\u{fffd}");
    }

    /// A program may end its first thread and serve with the others.
    #[test]
    fn a_process_lives_as_long_as_a_thread() {
        let root = FakeRoot::new();
        root.process(7, 1, "srv");
        let stat = Proc::new(root.path()).stat(7).unwrap();
        let dead = |state: char, num_threads: i64| {
            let mut stat = stat.clone();
            (stat.state, stat.num_threads) = (state, num_threads);
            is_dead(&stat)
        };
        assert_eq!([dead('Z', 1), dead('Z', 3), dead('S', 1)], [true, false, false]);
    }

    #[test]
    fn a_vanished_process_is_nothing() {
        let proc = Proc::new(Path::new("/nonexistent"));
        assert!(proc.stat(1).is_none() && proc.pids().is_empty() && proc.socket_inodes(1).is_empty());
        assert_eq!((proc.inner_pid(4), proc.exe(4), proc.cmdline(4)), (4, String::new(), String::new()));
    }

    #[test]
    fn only_numbers_are_processes() {
        let root = FakeRoot::new();
        root.process(12, 1, "b").process(3, 1, "a").file("proc/stat", "").file("proc/self/mountinfo", "");
        assert_eq!(Proc::new(root.path()).pids(), [3, 12]);
    }

    #[test]
    fn a_container_process_has_an_inner_pid() {
        let root = FakeRoot::new();
        root.process(4242, 1, "app").file("proc/4242/status", "Name:\tapp\nNSpid:\t4242\t17\t1\n");
        assert_eq!(Proc::new(root.path()).inner_pid(4242), 1);
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(cpu_list("0-2,5\n"), [0, 1, 2, 5]);
        assert!(cpu_list("\n").is_empty());
    }
}
