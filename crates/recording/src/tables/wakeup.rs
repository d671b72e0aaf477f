// SPDX-License-Identifier: Apache-2.0
//! Who ended a wait.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A wait of a thread of the target, or of one that woke it, or of one that woke that one and so on; and who ended it.
/// Waits are picked in proportion to their length: a row stands for all blocked time of the thread since its row before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Wakeup {
    /// When the wait ended, ns after the capture's start.
    pub t_ns: u64,
    /// Process id of the sleeper.
    pub pid: u32,
    /// Thread id of the sleeper.
    pub tid: u32,
    /// Command name of the sleeper.
    pub comm: String,
    /// Length of the wait, ns.
    pub wait_ns: u64,
    /// When the row before ended, or the first wait began, ns after the capture's start; the next four are of the time in between.
    pub since_ns: u64,
    /// Blocked time that the row stands for, ns; at least `wait_ns`.
    pub blocked_ns: u64,
    /// On a CPU, ns.
    pub cpu_ns: u64,
    /// Ready to run without a CPU, ns.
    pub run_queue_ns: u64,
    /// Number of waits.
    pub waits: u32,
    /// Those of them that a thread of the target ended.
    pub asked: u32,
    /// System call number of the wait; -1 = none.
    pub syscall: i32,
    /// The call's first four arguments; empty outside a call.
    pub args: Vec<u64>,
    /// The call's first argument points into the frames of the calls that led to it (within 1 KiB above the stack pointer): what a
    /// thread has there, it waits for alone.
    pub own_frame: bool,
    /// What the call's first argument refers to, as in table `wait`; of an epoll the file whose event ended the wait, of a
    /// poll of one file that one.
    pub fd_kind: String,
    /// Magic number of the file system that a file is on, as statfs(2) gives it; 0 = no file, or unknown.
    pub file_system: u32,
    /// Task state in the wait (1 interruptible, 2 uninterruptible, 4 stopped, 8 traced, 16 held by a freezer), modifier bits removed.
    pub state: u32,
    /// The kernel counted the wait as I/O wait.
    pub io_wait: bool,
    /// Id in table `stack` of the kernel stack of the wait; 0 = not taken.
    pub stack: u32,
    /// Address family of the socket that was waited for (1 Unix, 2 IPv4, 10 IPv6); 0 = none, or unknown.
    pub family: u32,
    /// Its own port; of a Unix socket 1 = it has a name, as those have that were accepted.
    pub local_port: u32,
    /// Its peer's port, likewise.
    pub remote_port: u32,
    /// Its peer's address; empty = none.
    pub peer: String,
    /// Name of the file that was waited for, where it is a file, a pipe or a terminal; empty = unknown.
    pub path: String,
    /// In what the waker ran: `thread` (a process in a system call of its own), `kernel thread`, or `interrupt`, whose
    /// thread is a bystander.
    pub context: String,
    /// Process id of the waker.
    pub waker_pid: u32,
    /// Thread id of the waker.
    pub waker_tid: u32,
    /// Command name of the waker.
    pub waker_comm: String,
    /// System call number that the waker was in; -1 = none.
    pub waker_syscall: i32,
    /// Id in table `stack` of the waker's kernel stack; 0 = not taken.
    pub waker_stack: u32,
    /// Address family of the socket that the waker's call was about; 0 = none.
    pub waker_family: u32,
    /// Its own port.
    pub waker_local_port: u32,
    /// Its peer's port: the sleeper's, where the waker wrote to it.
    pub waker_remote_port: u32,
}

impl Wakeup {
    pub(super) fn times(part: &Range<u64>) -> Range<u64> {
        part.clone()
    }

    /// A wait that began earlier counts from the part's start; of what the thread did before it, as much as lies in the part.
    pub(super) fn part(&self, part: &Range<u64>) -> Option<Self> {
        if !part.contains(&self.t_ns) {
            return None;
        }
        let began = self.t_ns.saturating_sub(self.wait_ns);
        let (before, within) = (began.saturating_sub(self.since_ns), began.saturating_sub(part.start));
        let cut = |ns: u64| match within < before {
            true => u64::try_from(u128::from(ns) * u128::from(within) / u128::from(before)).unwrap_or(ns),
            false => ns,
        };
        let wait_ns = self.wait_ns.min(self.t_ns - part.start);
        let short_ns = self.blocked_ns.saturating_sub(self.wait_ns);
        Some(Self {
            t_ns: self.t_ns - part.start,
            since_ns: self.since_ns.saturating_sub(part.start),
            wait_ns,
            blocked_ns: (self.blocked_ns - short_ns).saturating_sub(self.wait_ns - wait_ns) + cut(short_ns),
            cpu_ns: cut(self.cpu_ns),
            run_queue_ns: cut(self.run_queue_ns),
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_lies_in_the_part_is_whole() {
        let second = 1_000_000_000;
        // Five seconds on a CPU and in short waits, then a wait of three.
        let row = Wakeup {
            t_ns: 8 * second,
            wait_ns: 3 * second,
            blocked_ns: 4 * second,
            cpu_ns: 4 * second,
            ..Wakeup::default()
        };
        let part = row.part(&(4 * second..9 * second)).unwrap();
        assert_eq!((part.t_ns, part.since_ns, part.wait_ns), (4 * second, 0, 3 * second));
        assert_eq!((part.blocked_ns, part.cpu_ns), (3 * second + second / 5, 4 * second / 5));
        assert_eq!(row.part(&(6 * second..9 * second)).unwrap().wait_ns, 2 * second);
    }
}
