// SPDX-License-Identifier: Apache-2.0
//! What blocked threads waited for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Blocked time of one thread in one slice by system call, kind of file and kernel stack. A wait that goes on in the next
/// slice is in both, with its part in each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Wait {
    /// End of the slice, ns after the capture's start.
    pub t_ns: u64,
    /// Process id; 0 = threads that were younger than a second, together.
    pub pid: u32,
    /// Thread id; 0 as above.
    pub tid: u32,
    /// System call number; -1 = none (a page fault from user mode, or a kernel thread).
    pub syscall: i32,
    /// What the call's first argument refers to: `socket`, `pipe`, `tty`, `file`, `block`,
    /// `anon` (eventfd, epoll, timerfd …), or empty where it was not asked.
    pub fd_kind: String,
    /// Magic number of the file system that a file is on, as statfs(2) gives it; 0 = no file, or unknown.
    pub file_system: u32,
    /// Task state at the switch-out (1 interruptible, 2 uninterruptible, 4 stopped, 8 traced, 16 held by a freezer), modifier bits
    /// removed.
    pub state: u32,
    /// The kernel counted the wait as I/O wait.
    pub io_wait: bool,
    /// Id in table `stack` of the kernel stack; 0 = not taken (waits under the threshold). That of a wait that is
    /// uninterruptible without being I/O begins where the thread gave its CPU away.
    pub stack: u32,
    /// Number of waits that ended in the slice, or with the capture.
    pub count: u64,
    /// Blocked time in the slice, ns.
    pub total_ns: u64,
    /// Longest single wait, as long as it took until then, ns.
    pub max_ns: u64,
}
