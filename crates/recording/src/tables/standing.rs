// SPDX-License-Identifier: Apache-2.0
//! Waits that go on at the end of a capture.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A thread of the target that had been blocked in one wait for half a second or longer when the capture ended. What ends a wait tells
/// of it in table `wakeup`; of one that nothing has ended yet, only this row does. Of more than 1,000, those come first that have read
/// a request which nobody answered, and then the longest; the others have no row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Standing {
    /// When, ns after the capture's start.
    pub t_ns: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Command name.
    pub comm: String,
    /// For how long so far, ns; of a wait that began before the capture, since its start.
    pub wait_ns: u64,
    /// System call number of the wait; -1 = none.
    pub syscall: i32,
    /// The call's first four arguments; empty outside a call.
    pub args: Vec<u64>,
    /// The call's first argument points into the thread's own frames, as in table `wakeup`.
    pub own_frame: bool,
    /// What the call's first argument refers to, as in table `wait`; of a poll of one file that one.
    pub fd_kind: String,
    /// Magic number of the file system that a file is on, as statfs(2) gives it; 0 = no file, or unknown.
    pub file_system: u32,
    /// Task state, as in table `wait`.
    pub state: u32,
    /// The kernel counts the wait as I/O wait.
    pub io_wait: bool,
    /// Id in table `stack` of the kernel stack; 0 = not taken.
    pub stack: u32,
    /// Id in table `stack` of the user stack; 0 = not taken: others at the same place show theirs, there are too many, a thread of the
    /// process stands where nothing may interrupt it, or its memory cannot be read.
    pub user_stack: u32,
    /// Address family of the socket that it waits for (1 Unix, 2 IPv4, 10 IPv6); 0 = none, or unknown.
    pub family: u32,
    /// Its own port, as in table `wakeup`.
    pub local_port: u32,
    /// Its peer's port.
    pub remote_port: u32,
    /// Its peer's address; empty = none.
    pub peer: String,
    /// Name of the file that it waits for, where it is a file, a pipe or a terminal; empty = unknown.
    pub path: String,
    /// Requests of clients, and hellos of TLS, that this thread has read within the capture and that nobody has answered yet; of a service
    /// with very many, only those since its exchanges were followed last, and 0 if they are not at the end.
    pub requests: u32,
    /// For how long the oldest of them has been waiting, ns.
    pub request_ns: u64,
    /// Thread id that stands where a mutex of glibc keeps its owner, if the call is a futex that sleeps on a 2 and there is such a thread
    /// in the process; 0 = none, or it could not be read. Of anything but a mutex it says nothing.
    pub owner: u32,
}
