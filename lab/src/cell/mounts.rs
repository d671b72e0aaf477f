// SPDX-License-Identifier: Apache-2.0
//! Mounts, as `/proc/self/mountinfo` lists them.

use std::path::PathBuf;

/// One mount.
pub struct Mount<'m> {
    /// Where.
    pub at: PathBuf,
    /// Kind of the file system.
    pub kind: &'m str,
    options: &'m str,
}

impl Mount<'_> {
    /// Whether it is a version 1 hierarchy of cgroups with a controller.
    pub fn controls(&self, controller: &str) -> bool {
        self.kind == "cgroup" && self.options.split(',').any(|option| option == controller)
    }
}

/// The mounts of a mountinfo table, without lines that are none.
pub fn mounts(mountinfo: &str) -> impl Iterator<Item = Mount<'_>> {
    mountinfo.lines().filter_map(|line| {
        let (head, tail) = line.split_once(" - ")?;
        let mut tail = tail.split(' ');
        Some(Mount { at: head.split(' ').nth(4)?.into(), kind: tail.next()?, options: tail.nth(1)? })
    })
}
