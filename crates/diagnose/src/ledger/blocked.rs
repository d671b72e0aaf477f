// SPDX-License-Identifier: Apache-2.0
//! What a blocked thread was blocked for: from the system call it was in, the kind of file, the
//! task state and the kernel stack.

use serde::{Deserialize, Serialize};

use crate::syscall::{Family, family};

/// A kind of block: one ledger line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocked {
    /// Reading a socket.
    SocketRead,
    /// Waiting for a connection on a listener.
    Accept,
    /// Making a connection.
    Connect,
    /// Writing a socket that takes no more.
    SocketSend,
    /// epoll, poll, select, io_uring.
    Poll,
    /// A futex: a lock, a condition, or a parked pool worker.
    Futex,
    /// Block I/O, or a file system waiting for it.
    Disk,
    /// A page fault that waits for a page, inside or outside a system call.
    PageFault,
    /// The thread's own sleep.
    Sleep,
    /// A pipe.
    Pipe,
    /// A terminal.
    Tty,
    /// Waiting for a child.
    Child,
    /// Known call, none of the above.
    Other,
    /// Blocked time that no row of table `wait` accounts for.
    Unattributed,
}

impl Blocked {
    /// All kinds, in the order of display.
    pub const ALL: [Blocked; 14] = [
        Blocked::SocketRead,
        Blocked::Accept,
        Blocked::Connect,
        Blocked::SocketSend,
        Blocked::Poll,
        Blocked::Futex,
        Blocked::Disk,
        Blocked::PageFault,
        Blocked::Sleep,
        Blocked::Pipe,
        Blocked::Tty,
        Blocked::Child,
        Blocked::Other,
        Blocked::Unattributed,
    ];

    /// Name of the ledger line.
    pub fn line(self) -> &'static str {
        match self {
            Blocked::SocketRead => "blocked_socket_read",
            Blocked::Accept => "blocked_accept",
            Blocked::Connect => "blocked_connect",
            Blocked::SocketSend => "blocked_socket_send",
            Blocked::Poll => "blocked_poll",
            Blocked::Futex => "blocked_futex",
            Blocked::Disk => "blocked_disk",
            Blocked::PageFault => "blocked_page_fault",
            Blocked::Sleep => "blocked_sleep",
            Blocked::Pipe => "blocked_pipe",
            Blocked::Tty => "blocked_tty",
            Blocked::Child => "blocked_child",
            Blocked::Other => "blocked_other",
            Blocked::Unattributed => "blocked_unattributed",
        }
    }
}

/// TASK_UNINTERRUPTIBLE.
const UNINTERRUPTIBLE: u32 = 2;

/// Entry points of page faults on x86 and arm64: anything below them in a stack is the fault's.
const FAULTS: &[&str] =
    &["exc_page_fault", "asm_exc_page_fault", "do_user_addr_fault", "handle_mm_fault", "do_page_fault", "do_mem_abort"];

/// What one row of table `wait` was for.
pub struct Evidence<'a> {
    /// Name of the system call, `none` outside one.
    pub syscall: &'a str,
    /// Kind of the file behind the first argument.
    pub fd_kind: &'a str,
    /// Task state at the switch-out.
    pub state: u32,
    /// The kernel counted it as I/O wait.
    pub io_wait: bool,
    /// Kernel functions, leaf first.
    pub stack: &'a [&'a str],
}

/// The kind of block that the evidence shows.
pub fn kind(e: &Evidence) -> Blocked {
    // A fault inside a system call carries that call's number; only the stack tells.
    if e.stack.iter().any(|s| FAULTS.contains(s)) {
        return Blocked::PageFault;
    }
    let waits_for_io = e.io_wait || e.state & UNINTERRUPTIBLE != 0;
    if e.syscall == "none" {
        return if waits_for_io { Blocked::PageFault } else { Blocked::Other };
    }
    match family(e.syscall) {
        Family::Poll => Blocked::Poll,
        Family::Futex => Blocked::Futex,
        Family::Sleep => Blocked::Sleep,
        Family::Child => Blocked::Child,
        Family::Accept => Blocked::Accept,
        Family::Connect => Blocked::Connect,
        Family::Receive => transfer(e, waits_for_io, Blocked::SocketRead),
        Family::Send => transfer(e, waits_for_io, Blocked::SocketSend),
        // vfork's parent waits until its child has its own memory.
        _ if e.syscall == "vfork" => Blocked::Child,
        _ if waits_for_io => Blocked::Disk,
        _ => Blocked::Other,
    }
}

/// A read or write, by the file it goes to.
fn transfer(e: &Evidence, waits_for_io: bool, on_socket: Blocked) -> Blocked {
    let kernel = |part: &str| e.stack.iter().any(|s| s.contains(part));
    match e.fd_kind {
        "socket" => on_socket,
        "listener" => Blocked::Accept,
        "pipe" => Blocked::Pipe,
        "tty" => Blocked::Tty,
        "file" | "block" => Blocked::Disk,
        "anon" => Blocked::Other,
        _ if e.syscall.starts_with("recv") || e.syscall == "sendto" || e.syscall.starts_with("sendm") => on_socket,
        _ if kernel("pipe_read") || kernel("pipe_write") => Blocked::Pipe,
        _ if kernel("tty_read") || kernel("tty_write") => Blocked::Tty,
        _ if kernel("sock_read_iter") || kernel("sock_write_iter") || kernel("sk_wait_data") => on_socket,
        _ if waits_for_io => Blocked::Disk,
        _ => Blocked::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(syscall: &str, fd_kind: &str, state: u32, io_wait: bool, stack: &[&str], expected: Blocked) {
        assert_eq!(kind(&Evidence { syscall, fd_kind, state, io_wait, stack }), expected, "{syscall} on {fd_kind}");
    }

    #[test]
    fn calls_and_files() {
        check("read", "socket", 1, false, &[], Blocked::SocketRead);
        check("read", "pipe", 1, false, &[], Blocked::Pipe);
        check("read", "", 1, false, &["anon_pipe_read", "vfs_read"], Blocked::Pipe);
        check("read", "tty", 1, false, &[], Blocked::Tty);
        check("read", "anon", 1, false, &[], Blocked::Other);
        check("read", "", 2, true, &["folio_wait_bit_common"], Blocked::Disk);
        check("pread64", "file", 2, true, &[], Blocked::Disk);
        check("write", "socket", 1, false, &["sk_stream_wait_memory"], Blocked::SocketSend);
        check("sendmsg", "", 1, false, &[], Blocked::SocketSend);
        check("accept4", "", 1, false, &[], Blocked::Accept);
        check("epoll_pwait2", "anon", 1, false, &[], Blocked::Poll);
        check("futex", "", 1, false, &[], Blocked::Futex);
        check("clock_nanosleep", "", 1, false, &[], Blocked::Sleep);
        check("wait4", "", 1, false, &[], Blocked::Child);
        check("fsync", "file", 2, true, &[], Blocked::Disk);
        check("rt_sigsuspend", "", 1, false, &[], Blocked::Other);
        check("syscall 9999", "", 0, false, &[], Blocked::Other);
    }

    #[test]
    fn faults_inside_and_outside_calls() {
        check("none", "", 2, true, &[], Blocked::PageFault);
        check("none", "", 1, false, &[], Blocked::Other);
        let stack = ["io_schedule", "filemap_fault", "handle_mm_fault", "exc_page_fault", "copy_to_user", "vfs_read"];
        check("read", "socket", 2, true, &stack, Blocked::PageFault);
        check("epoll_wait", "anon", 1, false, &stack, Blocked::PageFault);
    }
}
