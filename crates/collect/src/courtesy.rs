// SPDX-License-Identifier: Apache-2.0
//! Computing without being felt. Loading programs, naming functions and judging are bursts of CPU time; on a host without
//! a spare CPU all of it is taken from the service that is observed, and from its clients, within a few of their requests.
//!
//! Two things make a burst harmless. At the idle place ([`idle`]) the scheduler gives a thread only what nobody else wants.
//! That holds among tasks of one cgroup; between cgroups it is the groups that compete, and a service has its own. So there
//! are [`pauses`] too: a millisecond of work, four without, as long as others are about to run.
//!
//! Both end when they take too long: a host without any idle time must get its verdict as well. And neither is for what
//! others wait for meanwhile: locks of the target's memory, the end of hooks.

mod idle;
mod pauses;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::priority;
use idle::Idle;
use pauses::Pauses;

/// How long a piece of work may stand back. There are two after a capture, and a verdict may take two seconds: what is left
/// after this time is done from the own place, with short pauses, and after twice this time as if nobody else were there.
pub const PATIENCE: Duration = Duration::from_millis(450);

struct Standing {
    idle: Option<Idle>,
    _pauses: Option<Pauses>,
}

thread_local! {
    static STANDING: RefCell<Option<Rc<Standing>>> = const { RefCell::new(None) };
}

/// Does work that nobody is to feel: at the idle place and with pauses, for `patience` at most. Within other such work it
/// changes nothing.
pub fn during<T>(patience: Duration, work: impl FnOnce() -> T) -> T {
    /// Gives the thread its own place back, also when the work panics.
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            STANDING.take();
        }
    }
    if standing().is_some() {
        return work();
    }
    let _restore = Restore;
    STANDING.set(Some(Rc::new(Standing { idle: Idle::stand(patience), _pauses: Pauses::begin(patience) })));
    work()
}

/// Lets everybody else go before the calling thread for good, as the one that captures does.
pub fn stand_back() {
    priority::stand_back();
}

/// Does work with pauses that may hold what others wait for, so that it must not stand at the idle place: it reads of the
/// target what the target's own threads change. No pause falls into a system call.
pub fn in_slices<T>(patience: Duration, work: impl FnOnce() -> T) -> T {
    let _pauses = standing().is_none().then(|| Pauses::begin(patience));
    work()
}

/// Does what others wait for: in one go, from the thread's own place.
pub fn urgently<T>(work: impl FnOnce() -> T) -> T {
    let standing = standing();
    let _away = standing.as_ref().and_then(|standing| standing.idle.as_ref()).map(Idle::leave);
    pauses::without(work)
}

/// Does in one go what the kernel gives up when it is interrupted, and begins anew: checking a program.
pub fn unbroken<T>(work: impl FnOnce() -> T) -> T {
    pauses::without(work)
}

fn standing() -> Option<Rc<Standing>> {
    STANDING.with_borrow(Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_place_comes_back() {
        let own = idle::policy();
        let (within, urgent, nested) = during(Duration::from_secs(60), || {
            (idle::policy(), urgently(idle::policy), during(Duration::from_secs(60), || unbroken(idle::policy)))
        });
        assert!(within == libc::SCHED_IDLE || within == own, "without the privilege to come back it stays");
        assert_eq!((urgent, nested, idle::policy()), (own, within, own));
        let failing = || during(Duration::from_secs(60), || assert_eq!(idle::policy(), -7, "in the middle"));
        let panicked = std::panic::catch_unwind(failing);
        assert!(panicked.is_err() && idle::policy() == own && standing().is_none());
    }
}
