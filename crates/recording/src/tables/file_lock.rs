// SPDX-License-Identifier: Apache-2.0
//! Locks on files before which the target stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A lock on a file before which threads of the target stood at the end of the capture, from /proc/locks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FileLock {
    /// When, ns after the capture's start.
    pub t_ns: u64,
    /// `FLOCK` (flock), `POSIX` (fcntl, lockf), `OFDLCK` (of an open file), `LEASE`, `DELEG`.
    pub kind: String,
    /// Process id of who has it; 0 = nobody was found: it is in another pid namespace, or behind many open files.
    pub pid: u32,
    /// Its command name; empty = unknown.
    pub comm: String,
    /// Name of the file, as that process has opened it; empty = unknown.
    pub path: String,
    /// The file's inode.
    pub inode: u64,
    /// Threads of the target that stand before it.
    pub waiting: u32,
}
