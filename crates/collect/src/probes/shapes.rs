// SPDX-License-Identifier: Apache-2.0
//! The shape of system calls: which take a descriptor first, and which argument is worth counting.
//! A call that is not listed is counted by number, thread and result alone.

use libc::c_long;

/// What one argument of a call means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Argument {
    /// Not counted.
    #[default]
    None,
    /// Bytes.
    Size,
    /// Milliseconds as int; negative = endless.
    TimeoutMs,
    /// Pointer to a timespec; NULL = endless.
    Timespec,
    /// Pointer to a timeval; NULL = endless.
    Timeval,
}

/// What is known of one system call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// The first argument is a descriptor.
    pub takes_fd: bool,
    /// What the counted argument means.
    pub argument: Argument,
    /// Which one it is, from 0.
    pub index: u8,
    /// The call asks for something that may not be there: a poll, a read, a yield, a short sleep.
    pub asks: bool,
}

/// The shape of call `nr`.
pub fn of(nr: usize) -> Shape {
    let found = SHAPES.iter().find(|row| usize::try_from(row.0) == Ok(nr));
    found.map_or_else(Shape::default, |&(_, takes_fd, argument, index, asks)| Shape { takes_fd, argument, index, asks })
}

/// Says for each call which file it is about; the C enum `subject`.
pub fn mark_subjects(calls: &mut [u8]) {
    const ONE_FILE: u8 = 1;
    const EPOLL_SET: u8 = 2;
    const POLL_SET: u8 = 3;
    for (nr, subject) in calls.iter_mut().enumerate() {
        let shape = of(nr);
        *subject = match shape.argument {
            _ if [libc::SYS_poll, libc::SYS_ppoll].iter().any(|poll| usize::try_from(*poll) == Ok(nr)) => POLL_SET,
            Argument::None | Argument::Size if shape.takes_fd => ONE_FILE,
            _ if shape.takes_fd => EPOLL_SET,
            _ => 0,
        };
    }
}

/// Word for a kind of descriptor; the C enum `fd_kind`.
pub fn fd_kind(number: u8) -> &'static str {
    const KINDS: [&str; 7] = ["", "socket", "pipe", "tty", "file", "block", "anon"];
    KINDS.get(usize::from(number)).copied().unwrap_or_default()
}

use Argument::{None as Nothing, Size, TimeoutMs, Timespec, Timeval};

/// Number, takes a descriptor, argument, its index, asks.
const SHAPES: &[(c_long, bool, Argument, u8, bool)] = &[
    (libc::SYS_epoll_wait, true, TimeoutMs, 3, true),
    (libc::SYS_epoll_pwait, true, TimeoutMs, 3, true),
    (libc::SYS_epoll_pwait2, true, Timespec, 3, true),
    (libc::SYS_poll, false, TimeoutMs, 2, true),
    (libc::SYS_ppoll, false, Timespec, 2, true),
    (libc::SYS_select, false, Timeval, 4, true),
    (libc::SYS_pselect6, false, Timespec, 4, true),
    (libc::SYS_io_uring_enter, true, Nothing, 0, true),
    (libc::SYS_sched_yield, false, Nothing, 0, true),
    (libc::SYS_nanosleep, false, Timespec, 0, true),
    (libc::SYS_clock_nanosleep, false, Timespec, 2, true),
    (libc::SYS_futex, false, Nothing, 0, false),
    (libc::SYS_read, true, Size, 2, true),
    (libc::SYS_readv, true, Nothing, 0, true),
    (libc::SYS_pread64, true, Size, 2, false),
    (libc::SYS_preadv, true, Nothing, 0, false),
    (libc::SYS_recvfrom, true, Size, 2, true),
    (libc::SYS_recvmsg, true, Nothing, 0, true),
    (libc::SYS_recvmmsg, true, Nothing, 0, true),
    (libc::SYS_accept, true, Nothing, 0, true),
    (libc::SYS_accept4, true, Nothing, 0, true),
    (libc::SYS_write, true, Size, 2, false),
    (libc::SYS_writev, true, Nothing, 0, false),
    (libc::SYS_pwrite64, true, Size, 2, false),
    (libc::SYS_pwritev, true, Nothing, 0, false),
    (libc::SYS_sendto, true, Size, 2, false),
    (libc::SYS_sendmsg, true, Nothing, 0, false),
    (libc::SYS_sendmmsg, true, Nothing, 0, false),
    (libc::SYS_sendfile, true, Size, 3, false),
    (libc::SYS_splice, true, Size, 4, false),
    (libc::SYS_copy_file_range, true, Size, 4, false),
    (libc::SYS_connect, true, Nothing, 0, false),
    (libc::SYS_shutdown, true, Nothing, 0, false),
    (libc::SYS_close, true, Nothing, 0, false),
    (libc::SYS_ioctl, true, Nothing, 0, false),
    (libc::SYS_fsync, true, Nothing, 0, false),
    (libc::SYS_fdatasync, true, Nothing, 0, false),
    (libc::SYS_fallocate, true, Nothing, 0, false),
    (libc::SYS_getdents64, true, Nothing, 0, false),
];
