// SPDX-License-Identifier: Apache-2.0
//! Rights for which threads wait: locks, and what they hand around among each other, such as a pooled connection.
//!
//! A lock of the C library, of Rust's or of Go's runtime is told by its futex. Language runtimes keep others themselves
//! (monitors, semaphores, pools of connections), and their threads are parked like idle ones. But a thread that blocks in
//! reads of a client's connection has a request in hand whenever it waits for anything else: if another such thread ends
//! that wait, it gave up what the first one needed. Threads without work are woken by whoever brings it.

use std::collections::BTreeSet;

use recording::tables::Wakeup;

use super::clients::Clients;
use crate::case::Case;
use crate::syscall::{Family, family};

/// What stands for the kind of file where a lock is waited for.
pub const LOCK: &str = "lock";
/// Likewise for a wait in futex that ends after a time at the latest.
pub const TIMED: &str = "timed";
/// Likewise for something that another thread hands on when it is done with it.
pub const TURN: &str = "turn";

/// Tells waits for rights.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    serving: BTreeSet<u32>,
}

impl Turns {
    /// Learns which threads block in reads of their clients.
    pub fn new(case: &Case, clients: &Clients, target: &BTreeSet<u32>) -> Self {
        let rows = case.recording.rows::<Wakeup>().iter().filter(|row| target.contains(&row.pid));
        Self { serving: rows.filter(|row| clients.is_read(case, row)).map(|row| row.tid).collect() }
    }

    /// Whether there are threads that serve one client at a time.
    pub fn serve(&self) -> bool {
        !self.serving.is_empty()
    }

    /// Whether a thread serves one client at a time.
    pub fn serves(&self, tid: u32) -> bool {
        self.serving.contains(&tid)
    }

    /// The right that a wait was for, if it was for one.
    pub fn right(&self, case: &Case, row: &Wakeup) -> Option<&'static str> {
        if is_lock(case, row.syscall, &row.args) || is_file_lock(case, row) {
            return Some(LOCK);
        }
        let of_two = row.context == "thread" && row.tid != row.waker_tid;
        let serve = self.serving.contains(&row.tid) && self.serving.contains(&row.waker_tid);
        (of_two && serve && is_futex(case, row.syscall)).then_some(TURN)
    }
}

/// What kind of wait in futex it is: [`LOCK`], [`TIMED`], or empty = another, or none in futex.
pub fn kind(case: &Case, syscall: i32, args: &[u64]) -> &'static str {
    let is_timed = || is_futex(case, syscall) && args.get(3).is_some_and(|timeout| *timeout != 0);
    match is_lock(case, syscall, args) {
        true => LOCK,
        false if is_timed() => TIMED,
        false => "",
    }
}

fn is_futex(case: &Case, syscall: i32) -> bool {
    family(&case.syscall(syscall)) == Family::Futex
}

/// Whether a wait is for a lock on a file. fcntl sleeps interruptibly for nothing else.
fn is_file_lock(case: &Case, row: &Wakeup) -> bool {
    const UNINTERRUPTIBLE: u32 = 2;
    match case.syscall(row.syscall).as_str() {
        "flock" => true,
        "fcntl" => row.state & UNINTERRUPTIBLE == 0,
        _ => false,
    }
}

/// Whether a wait is for a lock that another thread holds. Mutexes of glibc, of Rust's library and of Go's runtime put a
/// 2 where they sleep on one; condition variables, which sleep until there is work, put a sequence number there.
fn is_lock(case: &Case, syscall: i32, args: &[u64]) -> bool {
    const OPERATION: u64 = 0x7f;
    const WAIT: [u64; 2] = [0, 9]; // FUTEX_WAIT, FUTEX_WAIT_BITSET
    const LOCK: [u64; 2] = [6, 13]; // FUTEX_LOCK_PI, FUTEX_LOCK_PI2
    const CONTENDED: u64 = 2;
    let [_, operation, value, ..] = *args else { return false };
    let operation = operation & OPERATION;
    let contended = value & 0xffff_ffff == CONTENDED;
    is_futex(case, syscall) && (LOCK.contains(&operation) || WAIT.contains(&operation) && contended)
}
