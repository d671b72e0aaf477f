// SPDX-License-Identifier: Apache-2.0
//! Watches over captures. Who looks into a service that hangs may hang with it: a read of its memory or of its files comes back
//! when that lock or that file system answers, and until then no flag is looked at.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{panic, process, thread};

use anyhow::{Context, Result};

use crate::{FAILED, cleanup, left, say};

/// Beyond twice the planned time: on a host that is full, loading probes, naming functions and sealing take a dozen seconds.
const GRACE: Duration = Duration::from_secs(30);
/// How often it is looked at how long a capture takes.
const LOOK: Duration = Duration::from_secs(1);

/// How long the kernel may take for closing what we have open.
const CLOSING: Duration = Duration::from_secs(1);

/// Captures that are on.
static CAPTURES: Mutex<Vec<Folder>> = Mutex::new(Vec::new());

/// Somebody gave up: what fails from here on fails for that.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Where a capture writes to, and whether that is kept.
#[derive(Clone, PartialEq)]
struct Folder {
    dir: PathBuf,
    is_kept: bool,
}

/// What is watched over.
pub struct Watched<'a> {
    /// Where the capture writes to.
    pub dir: &'a Path,
    /// Whether that is to be kept.
    pub is_kept: bool,
    /// How long it is planned to be.
    pub length: Duration,
    /// Set when it is to end early.
    pub stop: &'a AtomicBool,
}

/// Captures in a thread of its own, and ends us where that takes far longer than was planned. `capture` sets the flag that it is
/// given once its window is open. (The main thread is not to be stuck: it is the one that the kernel tells of signals.)
pub fn over<T: Send>(watched: &Watched<'_>, capture: impl FnOnce(&AtomicBool) -> Result<T> + Send) -> Result<T> {
    let _listed = Listed::new(Folder { dir: watched.dir.to_path_buf(), is_kept: watched.is_kept });
    let is_open = &AtomicBool::new(false);
    thread::scope(|scope| {
        let (is_on, over) = mpsc::channel::<()>();
        let capturing = move || {
            let _is_on = is_on; // dropped when it is over
            capture(is_open)
        };
        let capturing = thread::Builder::new().name("capture".into()).spawn_scoped(scope, capturing);
        let capturing = capturing.context("failed to start a thread (pids.max, or the host's limit)")?;
        let mut bound = Bound { since: Instant::now(), length: watched.length, is_open: false };
        // The time in which this process stood still itself, as in a container that is paused, is no time of the capture's.
        let (mut now, mut last) = (bound.since, Instant::now());
        while over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            now += last.elapsed().min(2 * LOOK);
            last = Instant::now();
            let flags = [is_open, watched.stop].map(|flag| flag.load(Ordering::Relaxed));
            if bound.is_passed(now, flags) {
                give_up(&format!(
                    "the capture has taken twice its planned time and {} s more: it seems stuck in a read of the target (a lock of \
                     its memory, or a file system such as NFS or FUSE, that does not answer); all hooks are taken off",
                    GRACE.as_secs()
                ));
            }
        }
        while IS_OVER.load(Ordering::Relaxed) {
            thread::park(); // whoever gave up ends us, with his own words
        }
        capturing.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
}

/// How long a capture may take.
struct Bound {
    since: Instant,
    length: Duration,
    is_open: bool,
}

impl Bound {
    /// Whether that is over, with what is known of the capture: that its window is open, that it was told to end.
    fn is_passed(&mut self, now: Instant, [is_open, is_told]: [bool; 2]) -> bool {
        // Before that probes are loaded, which has a time of its own.
        if is_open && !self.is_open {
            (self.since, self.is_open) = (now, true);
        }
        let elapsed = now.saturating_duration_since(self.since);
        if is_told {
            self.length = self.length.min(elapsed);
        }
        elapsed > 2 * self.length + GRACE
    }
}

/// What a second signal does while a capture is on, or something is to be cleaned up; else nothing.
pub fn second_signal() {
    if !captures().is_empty() {
        give_up("the capture was given up at the second signal; the kernel takes all hooks off as this process ends");
    }
    if cleanup::is_due() {
        give_up("given up at the second signal");
    }
}

/// Ends us in the middle.
fn give_up(why: &str) -> ! {
    // Held to the end: whoever gives up too has nothing to add.
    let captures = captures();
    let wanted = captures.iter().filter(|it| it.is_kept);
    // Of one that had not begun there is nothing to be told, and it would stand in the way of the next one.
    let (seen, empty): (Vec<_>, Vec<_>) = wanted.partition(|it| left::has_slice(&it.dir));
    empty.iter().for_each(|it| left::remove(&it.dir));
    let kept: String = seen.iter().map(|it| format!("; {}", left::kept(&it.dir))).collect();
    say::sentence("wakewalk", &format!("{why}{kept}"));
    cleanup::clean();
    if !captures.is_empty() {
        IS_OVER.store(true, Ordering::Relaxed);
        panic::set_hook(Box::new(|_| {}));
        close_all();
    }
    process::exit(i32::from(FAILED))
}

/// Takes our hooks off now: a thread that stands in a file system that does not answer does not end with the process, and what is
/// open stays so as long as it stands there. Somebody else closes, for a file of such a one may keep him too.
#[allow(unsafe_code, reason = "rustix does not wrap close_range(2)")]
fn close_all() {
    let (done, is_done) = mpsc::channel::<()>();
    let close = move || {
        // SAFETY: no memory is passed. Whoever uses a descriptor after this gets an error, of which nobody hears: the process ends.
        unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
        drop(done);
    };
    if thread::Builder::new().name("closing".into()).spawn(close).is_ok() {
        let _ = is_done.recv_timeout(CLOSING); // then it ends as it can
    }
}

fn captures() -> MutexGuard<'static, Vec<Folder>> {
    CAPTURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place in the list of captures that are on.
struct Listed(Folder);

impl Listed {
    fn new(folder: Folder) -> Self {
        captures().push(folder.clone());
        Self(folder)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        captures().retain(|folder| *folder != self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NOT_YET: [bool; 2] = [false, false];
    const OPEN: [bool; 2] = [true, false];
    const TOLD: [bool; 2] = [true, true];

    #[test]
    fn a_capture_may_take_twice_its_time_and_more() {
        let start = Instant::now();
        let mut bound = Bound { since: start, length: 10 * SECOND, is_open: false };
        assert!(!bound.is_passed(start + 49 * SECOND, NOT_YET), "a host that is full loads slowly");
        assert!(!bound.is_passed(start + 50 * SECOND, OPEN), "from here on it is counted anew");
        assert!(!bound.is_passed(start + 100 * SECOND, OPEN) && bound.is_passed(start + 101 * SECOND, OPEN));
        let mut bound = Bound { since: start, length: 3600 * SECOND, is_open: true };
        assert!(!bound.is_passed(start + 20 * SECOND, TOLD) && !bound.is_passed(start + 69 * SECOND, TOLD));
        assert!(bound.is_passed(start + 71 * SECOND, TOLD), "it was to end after 20 s");
        let mut stuck = Bound { since: start, length: SECOND, is_open: false };
        assert!(stuck.is_passed(start + 33 * SECOND, NOT_YET), "in the look for the target");
    }

    #[test]
    fn what_a_capture_comes_to_is_handed_on() {
        let stop = AtomicBool::new(false);
        let watched = Watched { dir: Path::new("/nowhere"), is_kept: true, length: SECOND, stop: &stop };
        assert_eq!(over(&watched, |_| Ok(captures().len())).unwrap(), 1);
        assert!(over(&watched, |_| Err::<(), _>(anyhow::anyhow!("no"))).is_err() && captures().is_empty());
    }
}
