// SPDX-License-Identifier: Apache-2.0
//! System calls: their names on the recorded machine, and what a call of that name is for.
//!
//! Rules reason about names, never about numbers, so that a recording from another architecture
//! reads the same. Only the arguments that say how long a call may wait are understood here.

use serde::{Deserialize, Serialize};

/// What a call is for, as far as waiting and useful work are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Waits for readiness: epoll, poll, select, io_uring.
    Poll,
    /// Takes bytes: read, recv. The file may also be a disk's.
    Receive,
    /// Takes connections.
    Accept,
    /// Gives bytes: write, send, sendfile, splice.
    Send,
    /// Makes a connection.
    Connect,
    /// Waits for time to pass.
    Sleep,
    /// Gives the CPU to whoever wants it.
    Yield,
    /// Waits for another thread's memory write.
    Futex,
    /// Waits for a child.
    Child,
    /// Anything else.
    Other,
}

/// Whether a call that waits for files was given none, by its arguments: it only lets time pass.
pub fn waits_for_no_file(call: &str, args: &[u64]) -> bool {
    let files = match call {
        "select" | "pselect6" => args.first(),
        "poll" | "ppoll" => args.get(1),
        _ => None,
    };
    files.is_some_and(|number| number & 0xffff_ffff == 0)
}

impl Family {
    /// Whether a call of this family asks for something to happen: CPU spent inside it is not
    /// the service's own work. A `read` that finds bytes does copy them; the name cannot tell.
    pub fn waits(self) -> bool {
        !matches!(self, Family::Send | Family::Connect | Family::Other)
    }
}

/// How long a call was told to wait at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Timeout {
    /// Not at all.
    #[serde(rename = "0")]
    Zero,
    /// Up to 1 ms.
    #[serde(rename = "<= 1 ms")]
    UpTo1ms,
    /// Up to 10 ms.
    #[serde(rename = "<= 10 ms")]
    UpTo10ms,
    /// Up to 100 ms.
    #[serde(rename = "<= 100 ms")]
    UpTo100ms,
    /// Longer.
    #[serde(rename = "longer")]
    Longer,
    /// Until something happens.
    #[serde(rename = "endless")]
    Endless,
    /// The argument is a pointer, or was not kept.
    #[serde(rename = "unknown")]
    Unknown,
}

impl Timeout {
    /// The class of a timeout in ns; negative = endless. Bucketed values come as lower bounds, so
    /// a class reaches up to twice its name: 16 ms still counts as `<= 10 ms`.
    pub fn from_nanos(ns: i64) -> Self {
        match ns {
            i64::MIN..0 => Timeout::Endless,
            0 => Timeout::Zero,
            1..=1_000_000 => Timeout::UpTo1ms,
            1_000_001..=10_000_000 => Timeout::UpTo10ms,
            10_000_001..=100_000_000 => Timeout::UpTo100ms,
            _ => Timeout::Longer,
        }
    }

    /// Heading of the class.
    pub fn label(self) -> &'static str {
        match self {
            Timeout::Zero => "0",
            Timeout::UpTo1ms => "<= 1 ms",
            Timeout::UpTo10ms => "<= 10 ms",
            Timeout::UpTo100ms => "<= 100 ms",
            Timeout::Longer => "longer",
            Timeout::Endless => "endless",
            Timeout::Unknown => "unknown",
        }
    }
}

/// Name of a call number on `arch`; `none` for -1, the number where the table has no name.
pub fn name(arch: &str, number: i32) -> String {
    if number < 0 {
        return "none".to_string();
    }
    let known = match arch {
        "x86_64" => syscalls::x86_64::Sysno::new(number as usize).map(|s| s.name()),
        "aarch64" => syscalls::aarch64::Sysno::new(number as usize).map(|s| s.name()),
        _ => None,
    };
    known.map_or_else(|| format!("syscall {number}"), str::to_string)
}

/// Name of an error as in errno(3), `EAGAIN`, for a negative result.
pub fn error_name(result: i64) -> String {
    let number = i32::try_from(result.unsigned_abs()).unwrap_or(0);
    syscalls::Errno::new(number).name().map_or_else(|| format!("error {number}"), str::to_string)
}

/// Whether the result of a call tells if it found anything. io_uring_enter's is the number of submissions; what was found
/// is in a queue that the kernel and the program share, and no call shows it.
pub fn result_tells(name: &str) -> bool {
    name != "io_uring_enter"
}

/// Whether event loops wait in it: for many files at once, of which the kernel keeps a set.
pub fn is_loop(call: &str) -> bool {
    call.starts_with("epoll")
}

/// Whether it sends a signal to another process or thread.
pub fn sends_signal(call: &str) -> bool {
    matches!(call, "kill" | "tkill" | "tgkill" | "pidfd_send_signal" | "rt_sigqueueinfo" | "rt_tgsigqueueinfo")
}

/// What a call of this name is for.
pub fn family(name: &str) -> Family {
    match name {
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "poll" | "ppoll" | "select" | "pselect6" | "io_uring_enter" => {
            Family::Poll
        }
        "read" | "readv" | "pread64" | "preadv" | "preadv2" | "recvfrom" | "recvmsg" | "recvmmsg" => Family::Receive,
        "accept" | "accept4" => Family::Accept,
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" | "sendto" | "sendmsg" | "sendmmsg" | "sendfile"
        | "splice" | "tee" | "vmsplice" => Family::Send,
        "connect" => Family::Connect,
        "nanosleep" | "clock_nanosleep" => Family::Sleep,
        "sched_yield" => Family::Yield,
        "futex" | "futex_wait" | "futex_waitv" | "futex_wake" | "futex_requeue" => Family::Futex,
        "wait4" | "waitid" | "waitpid" => Family::Child,
        _ => Family::Other,
    }
}

/// Whether a call waits for the bytes of one file: it reads, or polls, as who reads with a timeout does first.
pub fn waits_for_bytes(name: &str) -> bool {
    family(name) == Family::Receive || matches!(name, "poll" | "ppoll")
}

/// How long a call may wait, from its argument registers, ns; negative = endless, none = no register has it.
pub fn timeout_ns(name: &str, args: &[u64]) -> Option<i64> {
    let millis = match name {
        "epoll_wait" | "epoll_pwait" => args.get(3),
        "poll" => args.get(2),
        _ => None,
    };
    millis.map(|&millis| i64::from(millis as i32).saturating_mul(1_000_000))
}

/// The class of how long a call may wait, from its argument registers.
pub fn timeout(name: &str, args: &[u64]) -> Timeout {
    if let Some(ns) = timeout_ns(name, args) {
        return Timeout::from_nanos(ns);
    }
    let pointer = |i: usize| match args.get(i) {
        Some(0) => Timeout::Endless,
        _ => Timeout::Unknown,
    };
    match name {
        "ppoll" => pointer(2),
        "select" | "pselect6" => pointer(4),
        "epoll_pwait2" => pointer(3),
        "sched_yield" => Timeout::Zero,
        // MSG_DONTWAIT, 0x40: this call does not wait. Without it the socket may still be non-blocking.
        "recvfrom" if args.get(3).is_some_and(|f| f & 0x40 != 0) => Timeout::Zero,
        "recvmsg" if args.get(2).is_some_and(|f| f & 0x40 != 0) => Timeout::Zero,
        _ => Timeout::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_architecture() {
        assert_eq!((name("x86_64", 232), name("aarch64", 22)), ("epoll_wait".into(), "epoll_pwait".into()));
        assert_eq!(
            (name("x86_64", -1), name("vax", 7), name("x86_64", i32::MAX)),
            ("none".into(), "syscall 7".into(), format!("syscall {}", i32::MAX))
        );
        assert_eq!(
            (error_name(-11), error_name(-4095), error_name(i64::MIN)),
            ("EAGAIN".into(), "error 4095".into(), "error 0".into())
        );
    }

    #[test]
    fn timeouts_from_registers() {
        assert_eq!(timeout("epoll_wait", &[4, 1, 1, 0]), Timeout::Zero);
        // A negative int arrives zero-extended: the upper half of the register means nothing.
        assert_eq!(timeout("epoll_pwait", &[4, 1, 1, 0xffff_ffff]), Timeout::Endless);
        assert_eq!(timeout("poll", &[1, 1, 20]), Timeout::UpTo100ms);
        assert_eq!((timeout("ppoll", &[1, 1, 0]), timeout("ppoll", &[1, 1, 9])), (Timeout::Endless, Timeout::Unknown));
        assert_eq!(timeout("epoll_wait", &[]), Timeout::Unknown);
        assert_eq!(timeout("recvfrom", &[3, 0, 10, 0x40]), Timeout::Zero);
    }
}
