// SPDX-License-Identifier: Apache-2.0
//! Names of files that threads wait for.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Names of files by process, descriptor and inode, for as long as a number is taken to mean the same file.
pub(crate) struct FileNames {
    root: PathBuf,
    names: HashMap<(u32, u64, u64), String>,
}

/// Files whose names are looked up until they are forgotten.
const MOST_NAMES: usize = 1024;

impl FileNames {
    /// None is known yet.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), names: HashMap::new() }
    }

    /// Name of a file of this kind. It is looked up while the process still has it, once.
    pub(crate) fn name(&mut self, kind: &str, key: (u32, u64, u64)) -> String {
        if !matches!(kind, "file" | "block" | "pipe" | "tty") {
            return String::new();
        }
        if self.names.len() >= MOST_NAMES && !self.names.contains_key(&key) {
            return String::new();
        }
        self.names.entry(key).or_insert_with(|| name(&self.root, key)).clone()
    }

    /// Numbers may mean other files from now on.
    pub(crate) fn forget(&mut self) {
        self.names.clear();
    }
}

/// What a descriptor stands for by now, unless that is another file than the one that was waited for: the name is read before the
/// inode, so that both are of one file if it is the right one. (`stat` would ask a file system, which may not answer.)
fn name(root: &Path, (pid, descriptor, inode): (u32, u64, u64)) -> String {
    let of = |what: &str| root.join(format!("proc/{pid}/{what}/{descriptor}"));
    let path = fs::read_link(of("fd")).unwrap_or_default();
    let about = fs::read_to_string(of("fdinfo")).unwrap_or_default();
    let number = about.lines().find_map(|line| line.strip_prefix("ino:")?.trim().parse::<u64>().ok()); // since Linux 5.14
    let is_it = number.is_none_or(|number| number == inode);
    if is_it && path.is_absolute() { path.to_string_lossy().into_owned() } else { String::new() } // not `pipe:[812]`
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_asked_for_once_while_its_number_is_known() {
        let root = tempfile::tempdir().unwrap();
        let descriptors = root.path().join("proc/7/fd");
        fs::create_dir_all(&descriptors).unwrap();
        let points_to = |file: &str| {
            let _ = fs::remove_file(descriptors.join("3")); // the first time there is none
            symlink(file, descriptors.join("3")).unwrap();
        };
        let mut files = FileNames::new(root.path());
        points_to("/data/one");
        assert_eq!(files.name("file", (7, 3, 11)), "/data/one");
        points_to("/data/two");
        assert_eq!(files.name("file", (7, 3, 11)), "/data/one", "once in a slice");
        files.forget();
        assert_eq!(files.name("file", (7, 3, 11)), "/data/two");
        fs::create_dir_all(root.path().join("proc/7/fdinfo")).unwrap();
        fs::write(root.path().join("proc/7/fdinfo/3"), "pos:\t0\nino:\t12\n").unwrap();
        files.forget();
        assert_eq!(files.name("file", (7, 3, 11)), "", "another file has the descriptor by now");
        assert_eq!(files.name("file", (7, 3, 12)), "/data/two");
    }
}
