// SPDX-License-Identifier: Apache-2.0
//! What a blocked thread was blocked for: from the system call it was in, the kind of file and its file system, the task
//! state and the kernel stack. Uninterruptible is not disk: locks of the kernel, file systems that somebody else serves and
//! the search for free memory are waited for in that state too.

use recording::tables::{Wait, Wakeup};
use serde::{Deserialize, Serialize};

use super::file_system::{self, FileSystem, Holds};
use super::kernel_lock;
use crate::case::Case;
use crate::facts::stacks::Stacks;
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
    /// A lock on a file that another process holds: flock, fcntl, a lease.
    FileLock,
    /// A semaphore of System V, or the counter of an eventfd.
    Semaphore,
    /// A lock inside the kernel, such as that of the memory map.
    KernelLock,
    /// Block I/O, or a file system waiting for it.
    Disk,
    /// A file system that a program in user space or another host serves: FUSE, NFS and their like.
    FileSystem,
    /// A page fault that waits for a page, inside or outside a system call.
    PageFault,
    /// Memory had to be freed first, or a limit of it was met.
    Memory,
    /// The thread's own sleep.
    Sleep,
    /// A pipe.
    Pipe,
    /// A terminal.
    Tty,
    /// Waiting for a child.
    Child,
    /// It was kept from running: by a stop signal, a debugger, or a freezer. Whatever it waited for besides.
    Stopped,
    /// Known call, none of the above.
    Other,
    /// Blocked time that no row of table `wait` accounts for.
    Unattributed,
}

impl Blocked {
    /// All kinds, in the order of display.
    pub const ALL: [Blocked; 20] = [
        Blocked::SocketRead,
        Blocked::Accept,
        Blocked::Connect,
        Blocked::SocketSend,
        Blocked::Poll,
        Blocked::Futex,
        Blocked::FileLock,
        Blocked::Semaphore,
        Blocked::KernelLock,
        Blocked::Disk,
        Blocked::FileSystem,
        Blocked::PageFault,
        Blocked::Memory,
        Blocked::Sleep,
        Blocked::Pipe,
        Blocked::Tty,
        Blocked::Child,
        Blocked::Stopped,
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
            Blocked::FileLock => "blocked_file_lock",
            Blocked::Semaphore => "blocked_semaphore",
            Blocked::KernelLock => "blocked_kernel_lock",
            Blocked::Disk => "blocked_disk",
            Blocked::FileSystem => "blocked_file_system",
            Blocked::PageFault => "blocked_page_fault",
            Blocked::Memory => "blocked_memory",
            Blocked::Sleep => "blocked_sleep",
            Blocked::Pipe => "blocked_pipe",
            Blocked::Tty => "blocked_tty",
            Blocked::Child => "blocked_child",
            Blocked::Stopped => "stopped",
            Blocked::Other => "blocked_other",
            Blocked::Unattributed => "blocked_unattributed",
        }
    }

    /// The same for people, behind "blocked": `socket read`.
    pub fn words(self) -> String {
        self.line().trim_start_matches("blocked_").replace('_', " ")
    }
}

/// Task states, as tables `wait` and `wakeup` have them.
pub(crate) const UNINTERRUPTIBLE: u32 = 2;
pub(crate) const STOPPED: u32 = 4;
pub(crate) const TRACED: u32 = 8;
pub(crate) const FROZEN: u32 = 16;

/// Entry points of page faults on x86 and arm64: anything below them in a stack is the fault's.
const FAULTS: &[&str] =
    &["exc_page_fault", "asm_exc_page_fault", "do_user_addr_fault", "handle_mm_fault", "do_page_fault", "do_mem_abort"];

/// Functions that look for pages to free on behalf of whoever wants one, or hold up whoever used too many.
const RECLAIM: &[&str] = &[
    "try_to_free_mem_cgroup_pages",
    "try_to_free_pages",
    "do_try_to_free_pages",
    "mem_cgroup_handle_over_high",
    "__mem_cgroup_handle_over_high",
    "throttle_direct_reclaim",
    "shrink_node",
    "shrink_lruvec",
    "__alloc_pages_direct_compact",
    "mem_cgroup_oom_synchronize",
];

/// Functions in which a lock on a file, or a lease of it, is waited for.
const FILE_LOCKS: &[&str] = &[
    "locks_lock_inode_wait",
    "flock_lock_inode_wait",
    "posix_lock_inode_wait",
    "do_lock_file_wait",
    "fcntl_setlk",
    "__break_lease",
];

/// What one row of table `wait` or `wakeup` was for.
pub struct Evidence<'a> {
    /// Name of the system call, `none` outside one.
    pub syscall: &'a str,
    /// Kind of the file behind the first argument.
    pub fd_kind: &'a str,
    /// Magic number of the file system that the file is on; 0 = unknown.
    pub file_system: u32,
    /// Task state at the switch-out.
    pub state: u32,
    /// The kernel counted it as I/O wait.
    pub io_wait: bool,
    /// Kernel functions, leaf first.
    pub stack: &'a [&'a str],
}

/// Kernel functions of a stack, leaf first.
pub fn symbols(stacks: &Stacks, stack: u32) -> Vec<&str> {
    stacks.frames(stack).map(|code| code.symbol.as_str()).collect()
}

/// What a row of table `wait` shows, with the names of its call and of its stack.
pub fn evidence_of_wait<'a>(row: &'a Wait, syscall: &'a str, stack: &'a [&'a str]) -> Evidence<'a> {
    let Wait { fd_kind, file_system, state, io_wait, .. } = row;
    Evidence { syscall, fd_kind, file_system: *file_system, state: *state, io_wait: *io_wait, stack }
}

/// The kind of block of a row of table `wait`.
pub fn of_wait(case: &Case, stacks: &Stacks, row: &Wait) -> Blocked {
    kind(&evidence_of_wait(row, &case.syscall(row.syscall), &symbols(stacks, row.stack)))
}

/// The kind of block of a row of table `wakeup`.
pub fn of_wakeup(case: &Case, stacks: &Stacks, row: &Wakeup) -> Blocked {
    kind(&Evidence {
        syscall: &case.syscall(row.syscall),
        fd_kind: &row.fd_kind,
        file_system: row.file_system,
        state: row.state,
        io_wait: row.io_wait,
        stack: &symbols(stacks, row.stack),
    })
}

/// The kind of block that the evidence shows.
pub fn kind(e: &Evidence) -> Blocked {
    if e.state & (STOPPED | TRACED | FROZEN) != 0 {
        return Blocked::Stopped;
    }
    if is_reclaim(e.stack) {
        return Blocked::Memory;
    }
    if e.is_file_lock() {
        return Blocked::FileLock;
    }
    if e.is_kernel_lock() {
        return Blocked::KernelLock;
    }
    if e.elsewhere().is_some() {
        return Blocked::FileSystem;
    }
    // A fault inside a system call carries that call's number; only the stack tells.
    if e.stack.iter().any(|s| FAULTS.contains(s)) {
        return Blocked::PageFault;
    }
    if e.syscall == "none" {
        return if e.io_wait || e.is_uninterruptible() { Blocked::PageFault } else { Blocked::Other };
    }
    match family(e.syscall) {
        Family::Poll => Blocked::Poll,
        Family::Futex => Blocked::Futex,
        Family::Sleep => Blocked::Sleep,
        Family::Child => Blocked::Child,
        Family::Accept => Blocked::Accept,
        Family::Connect => Blocked::Connect,
        Family::Receive => transfer(e, Blocked::SocketRead),
        Family::Send => transfer(e, Blocked::SocketSend),
        _ => other_call(e),
    }
}

/// Whether pages are being freed.
pub fn is_reclaim(stack: &[&str]) -> bool {
    stack.iter().any(|name| RECLAIM.contains(name))
}

fn other_call(e: &Evidence) -> Blocked {
    match e.syscall {
        // The parent waits until its child has its own memory; posix_spawn, system and most runtimes ask clone for that.
        "vfork" | "clone" | "clone3" => Blocked::Child,
        "semop" | "semtimedop" | "semtimedop_time64" => Blocked::Semaphore,
        _ if e.is_on_disk() => Blocked::Disk,
        _ => Blocked::Other,
    }
}

/// A read or write, by the file it goes to.
fn transfer(e: &Evidence, on_socket: Blocked) -> Blocked {
    let kernel = |part: &str| e.stack.iter().any(|s| s.contains(part));
    match e.fd_kind {
        "socket" => on_socket,
        "listener" => Blocked::Accept,
        "pipe" => Blocked::Pipe,
        "tty" => Blocked::Tty,
        "anon" if kernel("eventfd_read") || kernel("eventfd_write") => Blocked::Semaphore,
        "anon" => Blocked::Other,
        "file" | "block" if e.is_on_disk() => Blocked::Disk,
        "file" | "block" => Blocked::Other,
        _ if e.syscall.starts_with("recv") || e.syscall == "sendto" || e.syscall.starts_with("sendm") => on_socket,
        _ if kernel("pipe_read") || kernel("pipe_write") => Blocked::Pipe,
        _ if kernel("tty_read") || kernel("tty_write") => Blocked::Tty,
        _ if kernel("sock_read_iter") || kernel("sock_write_iter") || kernel("sk_wait_data") => on_socket,
        _ => other_call(e),
    }
}

impl Evidence<'_> {
    fn is_uninterruptible(&self) -> bool {
        self.state & UNINTERRUPTIBLE != 0
    }

    /// Whether it waits for a lock on a file. fcntl sleeps for nothing else.
    fn is_file_lock(&self) -> bool {
        self.syscall == "flock"
            || self.syscall == "fcntl" && !self.is_uninterruptible()
            || self.stack.iter().any(|name| FILE_LOCKS.contains(name))
    }

    /// Whether it waits for a lock of the kernel. Who waits for I/O holds such locks, and waits for none.
    fn is_kernel_lock(&self) -> bool {
        !self.io_wait
            && kernel_lock::of(self.stack).is_some_and(|lock| !lock.kind.is_empty() || self.is_uninterruptible())
    }

    /// The file system that somebody else serves, if it waits for one.
    pub fn elsewhere(&self) -> Option<FileSystem> {
        let of_file = file_system::of_magic(self.file_system).filter(|fs| self.fd_kind == "file" && fs.is_elsewhere());
        of_file.or_else(|| file_system::elsewhere(self.stack))
    }

    /// Whether a disk is waited for: the kernel counts it as I/O; or a file system of a disk waits, for a thread of its own
    /// that writes. Of a file whose file system was not recorded, uninterruptible has to do.
    fn is_on_disk(&self) -> bool {
        let file = matches!(self.fd_kind, "file" | "block");
        let holds = file_system::of_magic(self.file_system).map(|fs| fs.holds);
        let by_file = match holds {
            Some(Holds::Disk) => true,
            Some(_) => false,
            None => self.fd_kind == "block" || file && self.file_system == 0,
        };
        self.io_wait || self.is_uninterruptible() && (by_file || file_system::is_on_disk(self.stack))
    }
}

#[cfg(test)]
mod tests;
