// SPDX-License-Identifier: Apache-2.0
//! Rows of the program of wakeups, out of the bytes of its rings.

use super::super::{comm_of_chars, kernel_map, shapes};
use super::types;

/// The socket that a call is about: address of the peer in network order (of an IPv4 socket the first four bytes), address
/// family (0 = the call is about no socket), its own port and its peer's.
pub type Ports = types::port_pair;

/// The wait that has ended, and who ended it.
#[derive(Clone, Debug, Default)]
pub struct Wakeup {
    /// When, CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// When the thread was woken for its row before; the sums are of the time in between.
    pub since_ns: u64,
    /// Length of the wait that ended, ns.
    pub wait_ns: u64,
    /// Blocked time that the row stands for, ns.
    pub blocked_ns: u64,
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// Time ready to run without a CPU, ns.
    pub run_queue_ns: u64,
    /// Waits that the row stands for.
    pub waits: u32,
    /// Those of them that a thread of the target ended.
    pub asked: u32,
    /// The sleeper.
    pub sleeper: Party,
    /// Its call's first four arguments.
    pub args: [u64; 4],
    /// Its stack pointer in user space.
    pub sp: u64,
    /// Kind of the first argument's descriptor.
    pub fd_kind: &'static str,
    /// Magic number of the file system that the file is on; 0 = none.
    pub file_system: u32,
    /// Number of the inode; 0 = no file, or a socket.
    pub inode: u64,
    /// Task state bits of the sleeper.
    pub state: u8,
    /// The kernel counted the wait as I/O wait.
    pub io_wait: bool,
    /// In what the waker ran: `thread`, `kernel thread` or `interrupt`; in an interrupt the waker is a bystander.
    pub context: &'static str,
    /// The waker.
    pub waker: Party,
}

/// One side of a wakeup.
#[derive(Clone, Debug, Default)]
pub struct Party {
    /// Process id.
    pub tgid: u32,
    /// Thread id.
    pub tid: u32,
    /// Command name.
    pub comm: String,
    /// System call that it is in; -1 = none.
    pub syscall: i32,
    /// The socket that the call is about.
    pub ports: Ports,
    /// Key of the kernel stack in the ledger's map; 0 = none.
    pub stack: u64,
}

/// A thread that was started in a burst, of the target or of a process that is followed.
#[derive(Clone, Debug, Default)]
pub struct Birth {
    /// When, CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// Its process id.
    pub tgid: u32,
    /// Its thread id.
    pub tid: u32,
    /// Process id of the thread that started it.
    pub parent_tgid: u32,
    /// Thread id of that one.
    pub parent_tid: u32,
    /// Its command name, which is still that of whoever started it.
    pub comm: String,
}

/// One record of the ring of births; `None` = it is too short.
pub(super) fn parse_birth(bytes: &[u8]) -> Option<Birth> {
    let raw: types::birth = kernel_map::row(bytes)?;
    Some(Birth {
        at_ns: raw.at,
        tgid: raw.tgid,
        tid: raw.tid,
        parent_tgid: raw.parent_tgid,
        parent_tid: raw.parent_tid,
        comm: comm_of_chars(&raw.comm),
    })
}

/// One record of the ring; `None` = it is too short.
pub(crate) fn parse(bytes: &[u8]) -> Option<Wakeup> {
    const CONTEXTS: [&str; 3] = ["thread", "kernel thread", "interrupt"];
    let raw: types::wakeup = kernel_map::row(bytes)?;
    let party = |(tgid, tid), name: &[i8], syscall, ports, stack| Party {
        tgid,
        tid,
        comm: comm_of_chars(name),
        syscall,
        ports,
        stack,
    };
    Some(Wakeup {
        at_ns: raw.at,
        since_ns: raw.since,
        wait_ns: raw.wait,
        blocked_ns: raw.blocked,
        cpu_ns: raw.cpu,
        run_queue_ns: raw.run_queue,
        waits: raw.waits,
        asked: raw.asked,
        sleeper: party((raw.tgid, raw.tid), &raw.comm, raw.syscall, raw.ports, raw.stack),
        args: raw.args,
        sp: raw.sp,
        fd_kind: shapes::fd_kind(raw.fd_kind),
        file_system: raw.file_system,
        inode: raw.inode,
        state: raw.state,
        io_wait: raw.io_wait != 0,
        context: CONTEXTS.get(usize::from(raw.context)).copied().unwrap_or("thread"),
        waker: party(
            (raw.waker_tgid, raw.waker_tid),
            &raw.waker_comm,
            raw.waker_syscall,
            raw.waker_ports,
            raw.waker_stack,
        ),
    })
}
