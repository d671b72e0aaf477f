// SPDX-License-Identifier: Apache-2.0
//! The idle place: `SCHED_IDLE`, and a keeper that takes the thread back from there when it has been long enough. The
//! thread itself cannot: on a host without idle time it does not get a turn.

#![allow(unsafe_code, reason = "rustix does not wrap sched_setscheduler(2)")]

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::thread::{Pid, gettid};

use crate::priority;

/// A thread's stay at the idle place, to which it goes back and forth until its time is over.
pub struct Idle {
    thread: Arc<Thread>,
    done: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

/// The thread that stands there.
struct Thread {
    id: Pid,
    own: libc::c_int,
    over: Mutex<bool>,
}

/// The way to the own place and back.
pub struct Away<'i>(&'i Thread);

impl Idle {
    /// Sends the calling thread to the idle place, for `patience` at most. `None` = it has a place that somebody chose for
    /// it, or would not be let back.
    pub fn stand(patience: Duration) -> Option<Self> {
        priority::own(); // while it can still be told
        let own = policy();
        if !matches!(own, libc::SCHED_OTHER | libc::SCHED_BATCH) {
            return None;
        }
        let thread = Arc::new(Thread { id: gettid(), own, over: Mutex::new(false) });
        let (done, wait) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let kept = Arc::clone(&thread);
        let keep = move || {
            let _ = tell.send(gettid());
            if wait.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                kept.hurry();
            }
        };
        let keeper = thread::Builder::new().name("keeper".into()).spawn(keep).ok()?;
        let idle = Self { thread, done: Some(done), keeper: Some(keeper) };
        // Whether one is let back is tried with the keeper: if not, nothing is lost but a keeper.
        let keeper = told.recv().ok()?;
        if !(set(keeper, libc::SCHED_IDLE) && set(keeper, own)) {
            *idle.thread.over() = true;
            return None;
        }
        idle.thread.stand();
        Some(idle)
    }

    /// To the own place, until what is returned is dropped.
    pub fn leave(&self) -> Away<'_> {
        self.thread.leave();
        Away(&self.thread)
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.thread.end();
        self.done.take();
        let _ = self.keeper.take().map(JoinHandle::join); // it does not panic
    }
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        self.0.stand();
    }
}

impl Thread {
    fn over(&self) -> MutexGuard<'_, bool> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stand(&self) {
        if !*self.over() {
            set(self.id, libc::SCHED_IDLE);
        }
    }

    fn leave(&self) {
        if !*self.over() {
            set(self.id, self.own);
        }
    }

    /// Back for good.
    fn end(&self) {
        // At once: whoever comes back between the two would stand there for good.
        let mut over = self.over();
        if !*over {
            set(self.id, self.own);
        }
        *over = true;
    }

    /// Back for good, and not behind others either: it took too long.
    fn hurry(&self) {
        self.end();
        // Whoever may come back from the idle place may do this too.
        let _ = priority::own().map(|nice| setpriority_process(Some(self.id), nice));
    }
}

/// The calling thread's policy; real-time and deadline ones are somebody's choice.
pub fn policy() -> libc::c_int {
    // SAFETY: no pointers; 0 means the calling thread.
    unsafe { libc::sched_getscheduler(0) }
}

fn set(thread: Pid, policy: libc::c_int) -> bool {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: `none` lives through the call, and the kernel only reads it.
    unsafe { libc::sched_setscheduler(thread.as_raw_pid(), policy, &raw const none) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends() {
        let own = policy();
        let idle = Idle::stand(Duration::from_millis(1));
        while idle.is_some() && !*idle.as_ref().unwrap().thread.over() {
            thread::yield_now();
        }
        assert_eq!(policy(), own);
        drop(idle.as_ref().map(Idle::leave));
        assert_eq!(policy(), own, "there is no way back to the idle place");
    }

    #[test]
    fn a_chosen_place_is_kept() {
        thread::spawn(|| {
            set(gettid(), libc::SCHED_IDLE);
            assert!(Idle::stand(Duration::from_secs(60)).is_none());
            assert_eq!(policy(), libc::SCHED_IDLE);
        })
        .join()
        .unwrap();
    }
}
