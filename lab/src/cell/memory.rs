// SPDX-License-Identifier: Apache-2.0
//! Memory limits of a cell: a cgroup of their own where the memory controller has a hierarchy of its own (version 1), else
//! a setting of the program's cgroup.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Group;
use super::mounts::mounts;

/// Where limits are set.
pub struct Memory {
    /// The cgroup in the memory hierarchy; none where that is the same as the one for CPU.
    own: Option<PathBuf>,
    none: PathBuf,
}

impl Memory {
    /// For the cell of this name; nothing is made yet.
    ///
    /// # Errors
    /// The mounts cannot be read.
    pub fn of(name: &str) -> Result<Self> {
        let table = fs::read_to_string("/proc/self/mountinfo").context("failed to read the mounts")?;
        Ok(Self { own: find(&table).map(|root| root.join(name)), none: PathBuf::new() })
    }

    /// The cgroup that has to be removed with the cell; empty = none.
    pub fn path(&self) -> &Path {
        self.own.as_ref().unwrap_or(&self.none)
    }

    /// The cgroup that a program has to join, beside `group`, to be limited.
    ///
    /// # Errors
    /// The host limits no memory.
    pub fn limited(&self, group: &Group, bytes: u64) -> Result<PathBuf> {
        let (dir, file) = match &self.own {
            Some(dir) => (dir.clone(), "memory.limit_in_bytes"),
            None => (group.path().to_path_buf(), "memory.max"),
        };
        fs::create_dir_all(&dir).with_context(|| format!("failed to make cgroup `{}`", dir.display()))?;
        fs::write(dir.join(file), bytes.to_string())
            .with_context(|| format!("failed to set a memory limit on `{}`", dir.display()))?;
        Ok(dir)
    }
}

/// Mount point of the version 1 hierarchy that limits memory, from a mountinfo table.
fn find(mountinfo: &str) -> Option<PathBuf> {
    mounts(mountinfo).find(|mount| mount.controls("memory")).map(|mount| mount.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_is_found() {
        let table = "35 25 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                     36 25 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        assert_eq!(find(table), Some("/sys/fs/cgroup/memory".into()));
        assert_eq!(find("35 25 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"), None);
    }
}
