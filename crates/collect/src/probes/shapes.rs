// SPDX-License-Identifier: Apache-2.0
//! The shape of system calls: which take a descriptor first, and which argument is worth counting.
//! A call that is not listed is counted by number, thread and result alone.

use libc::c_long;

/// Bytes above a stack pointer in which the frames of a call into the kernel and of those that led to it lie.
const FRAMES: u64 = 1024;

/// Whether an argument of a call points into the frames that lie above a stack pointer.
pub fn is_in_own_frame(argument: u64, sp: u64) -> bool {
    argument.checked_sub(sp).is_some_and(|above| above < FRAMES)
}

/// Which file a call is about; the C enum `subject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Subject {
    /// None.
    #[default]
    No = 0,
    /// That of its first argument, a descriptor.
    File = 1,
    /// Of those that its first argument, a descriptor, watches.
    Epoll = 2,
    /// Of those in the array at its first argument.
    Poll = 3,
}

impl Subject {
    /// Whether the call's first argument is a descriptor.
    pub fn is_descriptor(self) -> bool {
        matches!(self, Self::File | Self::Epoll)
    }
}

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
    /// Which file it is about.
    pub subject: Subject,
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
    found.map_or_else(Shape::default, |&(_, subject, argument, index, asks)| Shape { subject, argument, index, asks })
}

/// Says for each call which file it is about.
pub fn mark_subjects(calls: &mut [u8]) {
    for (nr, subject) in calls.iter_mut().enumerate() {
        *subject = of(nr).subject as u8;
    }
}

/// Says of each call whether it waits for something to come in.
pub fn mark_asking(calls: &mut [bool]) {
    for (nr, asks) in calls.iter_mut().enumerate() {
        *asks = of(nr).asks;
    }
}

/// Word for a kind of descriptor; the C enum `fd_kind`.
pub fn fd_kind(number: u8) -> &'static str {
    const KINDS: [&str; 7] = ["", "socket", "pipe", "tty", "file", "block", "anon"];
    KINDS.get(usize::from(number)).copied().unwrap_or_default()
}

use Argument::{None as Nothing, Size, TimeoutMs, Timespec, Timeval};
use Subject::{Epoll, File, No, Poll};

/// Number, which file it is about, argument, its index, asks.
const SHAPES: &[(c_long, Subject, Argument, u8, bool)] = &[
    (libc::SYS_epoll_wait, Epoll, TimeoutMs, 3, true),
    (libc::SYS_epoll_pwait, Epoll, TimeoutMs, 3, true),
    (libc::SYS_epoll_pwait2, Epoll, Timespec, 3, true),
    (libc::SYS_poll, Poll, TimeoutMs, 2, true),
    (libc::SYS_ppoll, Poll, Timespec, 2, true),
    (libc::SYS_select, No, Timeval, 4, true),
    (libc::SYS_pselect6, No, Timespec, 4, true),
    (libc::SYS_io_uring_enter, File, Nothing, 0, true),
    (libc::SYS_sched_yield, No, Nothing, 0, true),
    (libc::SYS_nanosleep, No, Timespec, 0, true),
    (libc::SYS_clock_nanosleep, No, Timespec, 2, true),
    (libc::SYS_futex, No, Nothing, 0, false),
    (libc::SYS_read, File, Size, 2, true),
    (libc::SYS_readv, File, Nothing, 0, true),
    (libc::SYS_pread64, File, Size, 2, false),
    (libc::SYS_preadv, File, Nothing, 0, false),
    (libc::SYS_recvfrom, File, Size, 2, true),
    (libc::SYS_recvmsg, File, Nothing, 0, true),
    (libc::SYS_recvmmsg, File, Nothing, 0, true),
    (libc::SYS_accept, File, Nothing, 0, true),
    (libc::SYS_accept4, File, Nothing, 0, true),
    (libc::SYS_write, File, Size, 2, false),
    (libc::SYS_writev, File, Nothing, 0, false),
    (libc::SYS_pwrite64, File, Size, 2, false),
    (libc::SYS_pwritev, File, Nothing, 0, false),
    (libc::SYS_sendto, File, Size, 2, false),
    (libc::SYS_sendmsg, File, Nothing, 0, false),
    (libc::SYS_sendmmsg, File, Nothing, 0, false),
    (libc::SYS_sendfile, File, Size, 3, false),
    (libc::SYS_splice, File, Size, 4, false),
    (libc::SYS_copy_file_range, File, Size, 4, false),
    (libc::SYS_connect, File, Nothing, 0, false),
    (libc::SYS_shutdown, File, Nothing, 0, false),
    (libc::SYS_close, File, Nothing, 0, false),
    (libc::SYS_ioctl, File, Nothing, 0, false),
    (libc::SYS_fsync, File, Nothing, 0, false),
    (libc::SYS_fdatasync, File, Nothing, 0, false),
    (libc::SYS_flock, File, Nothing, 0, false),
    (libc::SYS_fcntl, File, Nothing, 0, false),
    (libc::SYS_fallocate, File, Nothing, 0, false),
    (libc::SYS_getdents64, File, Nothing, 0, false),
];
