// SPDX-License-Identifier: Apache-2.0
//! What a wait in futex is for, as far as its arguments say.

use super::who::{LOCK, TIMED};
use crate::case::Case;
use crate::syscall::{Family, family};

/// What kind of wait in futex it is: [`LOCK`], [`TIMED`], or empty = another, or none in futex.
pub fn kind(case: &Case, syscall: i32, args: &[u64]) -> &'static str {
    let is_timed = || is_futex(case, syscall) && args.get(3).is_some_and(|timeout| *timeout != 0);
    match is_lock(case, syscall, args) {
        true => LOCK,
        false if is_timed() => TIMED,
        false => "",
    }
}

pub fn is_futex(case: &Case, syscall: i32) -> bool {
    family(&case.syscall(syscall)) == Family::Futex
}

/// Whether a wait is for a lock that another thread holds. Mutexes of glibc, of Rust's library and of Go's runtime put a
/// 2 where they sleep on one; condition variables, which sleep until there is work, put a sequence number there.
pub fn is_lock(case: &Case, syscall: i32, args: &[u64]) -> bool {
    const OPERATION: u64 = 0x7f;
    const WAIT: [u64; 2] = [0, 9]; // FUTEX_WAIT, FUTEX_WAIT_BITSET
    const LOCK: [u64; 2] = [6, 13]; // FUTEX_LOCK_PI, FUTEX_LOCK_PI2
    const CONTENDED: u64 = 2;
    let [_, operation, value, ..] = *args else { return false };
    let operation = operation & OPERATION;
    let contended = value & 0xffff_ffff == CONTENDED;
    is_futex(case, syscall) && (LOCK.contains(&operation) || WAIT.contains(&operation) && contended)
}
