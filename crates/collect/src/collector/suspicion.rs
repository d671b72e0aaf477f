// SPDX-License-Identifier: Apache-2.0
//! Whether system calls deserve counting: samples show threads that keep asking.

use std::collections::{HashMap, HashSet};

use crate::probes::ledger::ThreadRow;
use crate::probes::shapes;

/// Samples before a thread's calls are judged.
const ENOUGH_SAMPLES: u64 = 5;
/// Share of a thread's samples that must be in asking calls.
const ASKING_SHARE: f64 = 0.1;

/// What samples say about asking calls, by thread, and by process: a hundred threads that ask a little each have
/// hardly a sample each.
#[derive(Debug, Default)]
pub struct Suspicion {
    threads: HashMap<u32, Seen>,
    processes: HashMap<u32, Seen>,
    /// How many of them are suspect: it is asked for with each tick.
    suspects: usize,
    /// One that has ended was: others like it may come.
    is_remembered: bool,
}

/// Samples of a thread or a process.
#[derive(Debug, Default)]
struct Seen {
    all: u64,
    asking: u64,
}

impl Seen {
    /// Whether a good part of them is in calls that ask.
    fn is_suspect(&self) -> bool {
        self.all >= ENOUGH_SAMPLES && self.asking as f64 >= self.all as f64 * ASKING_SHARE
    }
}

impl Suspicion {
    /// Takes note of one sample: its process and thread, the call it is in, and whether it has just left one.
    pub fn see(&mut self, pid: u32, tid: u32, syscall: i32, after_call: bool) {
        let asks = after_call || usize::try_from(syscall).is_ok_and(|nr| shapes::of(nr).asks);
        for seen in [self.threads.entry(tid).or_default(), self.processes.entry(pid).or_default()] {
            let was = seen.is_suspect();
            seen.all += 1;
            seen.asking += u64::from(asks);
            self.suspects = self.suspects + usize::from(seen.is_suspect()) - usize::from(was);
        }
    }

    /// Forgets all but these threads: of a service that forks, there is no end of them.
    pub fn keep(&mut self, living: &[ThreadRow]) {
        let threads: HashSet<u32> = living.iter().map(|row| row.tid).collect();
        let processes: HashSet<u32> = living.iter().map(|row| row.tgid).collect();
        for (seen, kept) in [(&mut self.threads, threads), (&mut self.processes, processes)] {
            let ended = seen.extract_if(|id, _| !kept.contains(id)).filter(|(_, seen)| seen.is_suspect()).count();
            self.suspects -= ended;
            self.is_remembered |= ended > 0;
        }
    }

    /// Whether any thread or process spends a good part of its CPU time in calls that ask, or did until it ended.
    pub fn is_raised(&self) -> bool {
        self.is_remembered || self.suspects > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspicion(polls: u64, others: u64) -> bool {
        let mut s = Suspicion::default();
        for _ in 0..polls {
            s.see(1, 1, libc::SYS_epoll_wait as i32, false);
        }
        for _ in 0..others {
            s.see(1, 1, -1, false);
        }
        s.is_raised()
    }

    #[test]
    fn a_thread_that_keeps_asking_raises_suspicion() {
        assert!(suspicion(6, 4));
        assert!(!suspicion(1, 30), "asking is a small part of its time");
        assert!(!suspicion(2, 0), "too few samples");
    }

    #[test]
    fn many_threads_that_ask_a_little_raise_it_together() {
        let mut s = Suspicion::default();
        for tid in 1..=5 {
            s.see(1, tid, libc::SYS_recvfrom as i32, false);
        }
        assert!(s.is_raised());
    }

    #[test]
    fn who_has_ended_is_forgotten_but_not_what_it_did() {
        let living = |tid| ThreadRow { tgid: 1, tid, ..ThreadRow::default() };
        let mut s = Suspicion::default();
        (2..=9).for_each(|tid| s.see(1, tid, -1, false));
        s.keep(&[living(2)]);
        assert_eq!((s.threads.len(), s.processes.len(), s.is_raised()), (1, 1, false));
        (0..5).for_each(|_| s.see(7, 7, libc::SYS_read as i32, false));
        assert!(s.is_raised());
        s.keep(&[living(2)]);
        assert_eq!((s.threads.len(), s.processes.len(), s.suspects, s.is_raised()), (1, 1, 0, true));
    }

    #[test]
    fn a_thread_that_asks_less_is_suspect_no_more() {
        let mut s = Suspicion::default();
        (0..5).for_each(|_| s.see(1, 1, libc::SYS_read as i32, false));
        (0..60).for_each(|_| s.see(1, 1, -1, false));
        assert!(!s.is_raised());
    }
}
