// SPDX-License-Identifier: Apache-2.0
//! A small `/proc` and `/sys` in a temporary folder, for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A root directory that goes away with the value.
pub struct FakeRoot {
    dir: tempfile::TempDir,
}

impl FakeRoot {
    /// An empty root.
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file, with the folders above it.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Makes a symbolic link, as `/proc` has them for descriptors and namespaces.
    pub fn link(&self, path: &str, to: &str) -> &Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path); // a second call replaces the first
        symlink(to, path).unwrap();
        self
    }

    /// A process that sleeps, in the first network namespace.
    pub fn process(&self, pid: u32, ppid: u32, comm: &str) -> &Self {
        self.stat(pid, &stat_line(pid, ppid, comm, 'S', 0))
            .file(&format!("proc/{pid}/status"), format!("Tgid:\t{pid}\nNSpid:\t{pid}\n"))
            .file(&format!("proc/{pid}/task/{pid}/status"), "Cpus_allowed_list:\t0-1\n")
            .file(&format!("proc/{pid}/cgroup"), "0::/\n")
            .link(&format!("proc/{pid}/ns/net"), "net:[1]")
    }

    /// `/proc/PID/stat`, of the process and of its only thread.
    pub fn stat(&self, pid: u32, line: &str) -> &Self {
        self.file(&format!("proc/{pid}/stat"), line).file(&format!("proc/{pid}/task/{pid}/stat"), line)
    }
}

/// A line of `/proc/PID/stat`: 52 fields, those that tests care about by name.
pub fn stat_line(pid: u32, ppid: u32, comm: &str, state: char, flags: u32) -> String {
    // ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime
    // priority nice threads itreal start vsize rss rsslim, then 27 more.
    let head = format!("{pid} ({comm}) {state} {ppid} 1 1 0 -1 {flags} 11 0 12 0 30 20 0 0 20 0 1 0 500 4096 25 1000");
    head + &" 0".repeat(27) + "\n"
}
