// SPDX-License-Identifier: Apache-2.0
//! What must not outlive us when we end in the middle: folders that nobody asked for, and commands that we started.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// All that there is.
static ALL: Mutex<Vec<Left>> = Mutex::new(Vec::new());

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Left {
    /// A folder, which is removed.
    Folder(PathBuf),
    /// A command's process group, which is told to end.
    Group(Pid),
}

/// A place in the list, given back where its owner takes care of it himself.
#[derive(Debug)]
pub struct Listed(Left);

impl Listed {
    /// Lists it.
    pub fn new(left: Left) -> Self {
        all().push(left.clone());
        Self(left)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        all().retain(|left| *left != self.0);
    }
}

/// Whether there is anything.
pub fn is_due() -> bool {
    !all().is_empty()
}

/// Cleans up, before an end at which nothing is dropped. Whoever would list more waits for ever.
pub fn clean() {
    let all = all();
    for left in all.iter() {
        match left {
            Left::Group(group) => drop(kill_process_group(*group, Signal::TERM)), // gone by itself
            Left::Folder(dir) => drop(fs::remove_dir_all(dir)),                   // it is for temporary files
        }
    }
    std::mem::forget(all);
}

fn all() -> MutexGuard<'static, Vec<Left>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}
