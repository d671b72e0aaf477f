// SPDX-License-Identifier: Apache-2.0
//! What a wait in futex is for, as far as its arguments say.

use recording::tables::{WaitStack, Wakeup};

use super::who::{LOCK, TIMED};
use crate::case::Case;
use crate::syscall::{Family, family};

/// A wait, as far as its arguments tell.
#[derive(Clone, Copy)]
pub struct Call<'r> {
    pub syscall: i32,
    pub args: &'r [u64],
    /// What it waits for is in its own frames.
    pub own_frame: bool,
}

impl<'r> From<&'r Wakeup> for Call<'r> {
    fn from(row: &'r Wakeup) -> Self {
        Self { syscall: row.syscall, args: &row.args, own_frame: row.own_frame }
    }
}

impl<'r> From<&'r WaitStack> for Call<'r> {
    fn from(row: &'r WaitStack) -> Self {
        Self { syscall: row.syscall, args: &row.args, own_frame: row.own_frame }
    }
}

/// What kind of wait in futex it is: [`LOCK`], [`TIMED`], or empty = another, or none in futex.
pub fn kind<'r>(case: &Case, call: impl Into<Call<'r>>) -> &'static str {
    let call = call.into();
    let is_timed = || is_futex(case, call.syscall) && call.args.get(3).is_some_and(|timeout| *timeout != 0);
    match is_lock(case, call) {
        true => LOCK,
        false if is_timed() => TIMED,
        false => "",
    }
}

pub fn is_futex(case: &Case, syscall: i32) -> bool {
    family(&case.syscall(syscall)) == Family::Futex
}

/// Whether a wait is for a lock that another thread holds. Mutexes of glibc, of Rust's library and of Go's runtime put a 2 where
/// they sleep on one, those of musl the flag for waiters beside the owner; condition variables, which sleep until there is work,
/// put a sequence number there. (musl's have a 2 too, in a word of the sleeper's own frame, which nobody can have held before.)
pub fn is_lock<'r>(case: &Case, call: impl Into<Call<'r>>) -> bool {
    const OPERATION: u64 = 0x7f;
    const WAIT: [u64; 2] = [0, 9]; // FUTEX_WAIT, FUTEX_WAIT_BITSET
    const LOCK: [u64; 2] = [6, 13]; // FUTEX_LOCK_PI, FUTEX_LOCK_PI2
    let Call { syscall, args, own_frame } = call.into();
    let [_, operation, value, ..] = *args else { return false };
    let operation = operation & OPERATION;
    let contended = !own_frame && is_contended(value & 0xffff_ffff);
    is_futex(case, syscall) && (LOCK.contains(&operation) || WAIT.contains(&operation) && contended)
}

/// Whether that is what stands in a lock that somebody holds and somebody else waits for.
fn is_contended(value: u64) -> bool {
    const CONTENDED: u64 = 2;
    const WAITERS: u64 = 0x8000_0000; // FUTEX_WAITERS, also of robust mutexes
    const OWNER: u64 = 0x3fff_ffff; // FUTEX_TID_MASK
    const LARGEST: u64 = 0x40_0000; // PID_MAX_LIMIT; what is beyond is a count below zero
    value == CONTENDED || value & WAITERS != 0 && (1..=LARGEST).contains(&(value & OWNER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_told_by_what_stands_in_them() {
        for value in [2, 0x8000_0010, 0x8000_0000 | 4711, 0xc000_0000 | 4711] {
            assert!(is_contended(value), "{value:x}");
        }
        for value in [0, 1, 3, 0x8000_0000, 0xffff_ffff, 0xffff_fffe, 0x7fff_ffff] {
            assert!(!is_contended(value), "{value:x}");
        }
    }

    #[test]
    fn what_lies_in_the_own_frame_is_no_lock() {
        let recording = recording::text::parse("meta host.arch=x86_64 length_ns=1e9").unwrap();
        let case = Case::new(&recording);
        let of = |own_frame, timeout| kind(&case, Call { syscall: 202, args: &[0x7000, 0x80, 2, timeout], own_frame });
        assert_eq!((of(false, 0), of(true, 0), of(true, 0x7100)), (LOCK, "", TIMED));
    }
}
