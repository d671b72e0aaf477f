// SPDX-License-Identifier: Apache-2.0
//! Standing back while the capture runs: what it takes then is little, but regular. But whoever stands at the back of a very
//! long queue never gets a turn; then rings overflow and ten seconds become a minute. Bursts are for `courtesy`.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{getpriority_process, setpriority_process};

/// Nice value of the thread that captures: on a full CPU it gets a tenth of what others get, and it needs less.
const NICE: i32 = 10;

/// So far behind, what is to be done will not get done at the back of the queue.
const TOO_LATE: Duration = Duration::from_millis(700);

/// The calling thread's place behind all others, until it is too late.
pub struct Back {
    before: Option<i32>,
    due: Instant,
}

impl Back {
    /// Lets everybody else go first; the next look is due after `within`.
    pub fn stand(within: Duration) -> Self {
        Self { before: stand_back(), due: Instant::now() + within }
    }

    /// Does what must be over soon from the old place: a look at thousands of threads takes milliseconds, at the back of a
    /// full queue half a second, and by then the last thread was not looked at when the first one was.
    pub fn forward<T>(&self, work: impl FnOnce() -> T) -> T {
        self.before.into_iter().for_each(set); // where this is refused, the look takes as long as it takes
        let done = work();
        if self.before.is_some() {
            set(NICE);
        }
        done
    }

    /// Whether the look that is due now comes too late: then the thread takes its old place again, for good. The next one
    /// is due after `within`.
    pub fn look(&mut self, within: Duration) {
        let late = Instant::now() > self.due + TOO_LATE;
        if let Some(before) = self.before.take_if(|_| late) {
            set(before); // refused without CAP_SYS_NICE: it stays late then, and the recording says how long it took
        }
        self.due = Instant::now() + within;
    }
}

/// Lets everybody else go before the calling thread, for good; its place before, if that was further in front.
pub fn stand_back() -> Option<i32> {
    own(); // while it can still be told
    let before = getpriority_process(None).ok().filter(|nice| *nice < NICE);
    if before.is_some() {
        // Lowering one's own priority needs no privilege and cannot fail in a way that matters.
        set(NICE);
    }
    before
}

/// The nice value with which this process began.
pub fn own() -> Option<i32> {
    static OWN: OnceLock<Option<i32>> = OnceLock::new();
    *OWN.get_or_init(|| getpriority_process(None).ok())
}

/// On Linux, the process is the calling thread.
fn set(nice: i32) {
    let _ = setpriority_process(None, nice); // see where it is called
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nice() -> i32 {
        getpriority_process(None).unwrap()
    }

    #[test]
    fn back_until_it_is_too_late() {
        let before = nice();
        let mut back = Back::stand(Duration::from_secs(60));
        assert_eq!(nice(), NICE.max(before));
        let within = back.forward(nice);
        assert!(within == before || within == nice(), "without the privilege it stays");
        assert_eq!(nice(), NICE.max(before));
        back.look(Duration::from_secs(60));
        assert_eq!(nice(), NICE.max(before), "in time");
        back.due = Instant::now().checked_sub(Duration::from_secs(5)).unwrap();
        back.look(Duration::from_secs(60));
        assert!(nice() == before || nice() == NICE, "without the privilege it stays");
    }
}
