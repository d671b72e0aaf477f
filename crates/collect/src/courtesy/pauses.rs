// SPDX-License-Identifier: Apache-2.0
//! Pauses: a timer's signal interrupts the computing thread, and its handler sleeps while others are about to run. So any
//! code is cut into slices, that of libraries too, and never inside the kernel, where it could hold a lock.
//!
//! One thread of a process at a time has them; it is the one that captures.

#![allow(unsafe_code, reason = "timers and handlers of signals have no safe interface")]

use std::cell::Cell;
use std::fs::File;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustix::thread::gettid;

use crate::clock;

/// Of work at a time, and without: a fifth of a CPU, and a request that meets a slice waits for a millisecond at most.
const SLICE_NS: u64 = 1_000_000;
const PAUSE_NS: u64 = 4_000_000;
/// Once the time for long ones is over, for as long again: half of a CPU.
const SHORT_PAUSE_NS: u64 = 1_000_000;
/// After what had to be done in one go.
const LONGEST_PAUSE_NS: u64 = 30_000_000;

/// A signal that the kernel does not send otherwise, and that libraries leave alone.
const SIGNAL: libc::c_int = libc::SIGVTALRM;

/// Some thread has pauses.
static TAKEN: AtomicBool = AtomicBool::new(false);
// For the handler, which may touch nothing else.
static TIMER: AtomicUsize = AtomicUsize::new(0);
static UNTIL_NS: AtomicU64 = AtomicU64::new(0);
static LONG_UNTIL_NS: AtomicU64 = AtomicU64::new(0);
static RESUMED_NS: AtomicU64 = AtomicU64::new(0);
static LOAD: AtomicI32 = AtomicI32::new(-1);
static CPUS: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// The pauses are this thread's.
    static MINE: Cell<bool> = const { Cell::new(false) };
}

/// Pauses of the calling thread, until they are dropped or their time is over.
pub struct Pauses {
    /// `/proc/loadavg`, which says how many tasks are about to run.
    _load: Option<OwnedFd>,
}

impl Pauses {
    /// Begins them, for `patience` and, shorter ones, for as long again; `None` = another thread has them, or the kernel has
    /// no timer left.
    pub fn begin(patience: Duration) -> Option<Self> {
        if TAKEN.swap(true, Relaxed) {
            return None;
        }
        let load = File::open("/proc/loadavg").ok().map(OwnedFd::from);
        LOAD.store(load.as_ref().map_or(-1, AsRawFd::as_raw_fd), Relaxed);
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        CPUS.store(u32::try_from(cpus).unwrap_or(u32::MAX), Relaxed);
        let (now, long) = (clock::monotonic_ns(), u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX / 4));
        LONG_UNTIL_NS.store(now + long, Relaxed);
        UNTIL_NS.store(now + 2 * long, Relaxed);
        RESUMED_NS.store(clock::thread_cpu_ns(), Relaxed);
        MINE.set(true);
        let pauses = Self { _load: load };
        (listen() && make_timer()).then(|| {
            arm(SLICE_NS);
            pauses
        })
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        UNTIL_NS.store(0, Relaxed); // a signal that is on its way does nothing
        let timer = TIMER.swap(0, Relaxed);
        if timer != 0 {
            // SAFETY: made by `timer_create`, and nobody else has it any more.
            unsafe { libc::timer_delete(with_exposed_provenance_mut(timer - 1)) };
        }
        LOAD.store(-1, Relaxed);
        MINE.set(false);
        TAKEN.store(false, Relaxed);
    }
}

/// Does something without pauses; those that it would have had come after it, up to a bound.
pub fn without<T>(work: impl FnOnce() -> T) -> T {
    struct Resume;
    impl Drop for Resume {
        fn drop(&mut self) {
            let worked_ns = worked_ns();
            if worked_ns >= SLICE_NS && clock::monotonic_ns() < UNTIL_NS.load(Relaxed) {
                rest(worked_ns);
            }
            arm(SLICE_NS);
        }
    }
    if !MINE.get() {
        return work();
    }
    arm(0);
    let _resume = Resume;
    work()
}

/// CPU time since the last pause.
fn worked_ns() -> u64 {
    clock::thread_cpu_ns().saturating_sub(RESUMED_NS.load(Relaxed))
}

/// The pause that belongs to so much work, where others are about to run.
fn rest(worked_ns: u64) {
    if is_crowded() {
        let is_long = clock::monotonic_ns() < LONG_UNTIL_NS.load(Relaxed);
        let pause_ns = if is_long { PAUSE_NS } else { SHORT_PAUSE_NS };
        let pause = span((worked_ns / SLICE_NS * pause_ns).clamp(pause_ns, LONGEST_PAUSE_NS));
        // SAFETY: `pause` lives through the call; another signal may cut it short.
        unsafe { libc::nanosleep(&raw const pause, null_mut()) };
    }
    RESUMED_NS.store(clock::thread_cpu_ns(), Relaxed);
}

fn listen() -> bool {
    // SAFETY: all zero is a valid action; the handler calls nothing that a handler may not.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(SIGNAL, &raw const action, null_mut()) == 0
    }
}

/// Makes a timer whose signal goes to the calling thread.
fn make_timer() -> bool {
    let mut timer = MaybeUninit::<libc::timer_t>::uninit();
    // SAFETY: all zero is a valid event; both live through the call, which writes the timer if it succeeds.
    unsafe {
        let mut event: libc::sigevent = zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = gettid().as_raw_pid();
        if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr()) != 0 {
            return false;
        }
        TIMER.store(timer.assume_init().expose_provenance() + 1, Relaxed); // the first one has number 0
    }
    true
}

/// Lets the timer fire in so many ns, 0 = not at all.
fn arm(ns: u64) {
    let timer = TIMER.load(Relaxed);
    if timer == 0 {
        return;
    }
    let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let once = libc::itimerspec { it_interval: never, it_value: span(ns) };
    // SAFETY: a timer of ours, or one that was just deleted, which the kernel refuses; `once` is only read.
    unsafe { libc::timer_settime(with_exposed_provenance_mut(timer - 1), 0, &raw const once, null_mut()) };
}

fn span(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: 0, tv_nsec: ns.min(999_999_999).cast_signed() }
}

/// Anything may have been interrupted: no allocation, no lock, and `errno` as it was.
extern "C" fn on_signal(_: libc::c_int) {
    // SAFETY: the address of the calling thread's `errno` is always valid.
    let errno = unsafe { *libc::__errno_location() };
    if clock::monotonic_ns() < UNTIL_NS.load(Relaxed) {
        let worked_ns = worked_ns();
        if worked_ns < SLICE_NS / 2 {
            arm(SLICE_NS - worked_ns); // it had to wait for its CPU, or for a disk
        } else {
            rest(worked_ns);
            arm(SLICE_NS);
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Whether so many tasks are about to run that one of them may want this CPU. Not told = yes.
fn is_crowded() -> bool {
    let mut text = [0_u8; 64];
    // SAFETY: the buffer lives through the call and its size is given; where there is no file the call fails.
    let got = unsafe { libc::pread(LOAD.load(Relaxed), text.as_mut_ptr().cast(), text.len(), 0) };
    let others = usize::try_from(got).ok().and_then(|got| running(text.get(..got)?)).map(|all| all.saturating_sub(1));
    others.is_none_or(|others| others.saturating_mul(4) > CPUS.load(Relaxed))
}

/// Tasks that are about to run, this one among them: `0.46 0.77 0.43 2/97 11758`.
fn running(loadavg: &[u8]) -> Option<u32> {
    let field = loadavg.split(|byte| *byte == b' ').nth(3)?;
    let digits = field.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_u32, |sum, digit| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0')));
    field.first()?.is_ascii_digit().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_about_to_run() {
        assert_eq!(running(b"0.46 0.77 0.43 2/97 11758\n"), Some(2));
        assert_eq!([running(b""), running(b"1 2 3"), running(b"1 2 3 /5")], [None; 3]);
    }

    #[test]
    fn work_is_interrupted_and_goes_on() {
        let pauses = loop {
            match Pauses::begin(Duration::from_secs(60)) {
                Some(pauses) => break pauses,
                None => thread::yield_now(), // another test has them
            }
        };
        let first = RESUMED_NS.load(Relaxed);
        while RESUMED_NS.load(Relaxed) == first {
            std::hint::spin_loop(); // until the handler was here
        }
        let counted = without(|| RESUMED_NS.load(Relaxed));
        assert!(counted >= first && Pauses::begin(Duration::ZERO).is_none());
        drop(pauses);
        assert!(!MINE.get());
    }
}
