// SPDX-License-Identifier: Apache-2.0
//! How much of each thread's blocked time is known to have been idleness: nothing to do until a client asked.
//!
//! A thread that another one of the target wakes was as idle as that one: a worker whose dispatcher waited for clients had
//! nothing to do, one whose lock another worker held while it slept had. So each thread's share is a mean over its own
//! waits, in which those that a thread ended count with that thread's share; worked out from nothing, step by step, so that
//! threads that only ever wake each other are not taken for idle.

use std::collections::BTreeMap;

use recording::tables::Wakeup;

use super::context::Context;
use super::ends::Kind;
use super::who::{INTERPRETER, PARKED};

/// Steps until the shares stand still, for chains of as many threads.
const STEPS: usize = 64;

/// What is known of the idleness of the target's threads.
#[derive(Clone, Debug, Default)]
pub struct Idleness {
    threads: BTreeMap<u32, Thread>,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    /// Known to be idle by itself, ns.
    idle_ns: f64,
    /// All that was walked, ns.
    all_ns: f64,
    /// Ended by another thread of the target, ns by that one's id.
    handed: BTreeMap<u32, f64>,
    /// Share of its time that was idleness.
    share: f64,
}

impl Idleness {
    /// Books a wait of the target.
    pub(super) fn book(&mut self, context: &Context<'_, '_>, row: &Wakeup, ns: f64) {
        let thread = self.threads.entry(row.tid).or_default();
        thread.all_ns += ns;
        if is_idle(context, row) {
            thread.idle_ns += ns;
        } else if row.context == "thread" && context.target.contains(&row.waker_pid) {
            *thread.handed.entry(row.waker_tid).or_default() += ns;
        }
    }

    /// Works the shares out.
    pub(super) fn settle(&mut self) {
        for _ in 0..STEPS {
            let shares: BTreeMap<u32, f64> = self.threads.iter().map(|(tid, thread)| (*tid, thread.share)).collect();
            for thread in self.threads.values_mut() {
                // One without any wait that was picked is always at work.
                let of = |tid: &u32| shares.get(tid).copied().unwrap_or(0.0);
                let handed: f64 = thread.handed.iter().map(|(tid, ns)| ns * of(tid)).sum();
                thread.share = crate::statistics::share(thread.idle_ns + handed, thread.all_ns);
            }
        }
    }

    /// Share of a thread's blocked time that was idleness; none if no wait of it was picked.
    pub fn of(&self, tid: u32) -> Option<f64> {
        self.threads.get(&tid).map(|thread| thread.share)
    }

    /// Blocked time of the target that other threads of its ended, and of which nobody knows whether it was idleness, ns.
    pub fn untold_ns(&self) -> f64 {
        let of = |tid: &u32| self.of(*tid).unwrap_or(0.0);
        let handed = self.threads.values().flat_map(|thread| &thread.handed);
        handed.map(|(waker, ns)| ns * (1.0 - of(waker))).sum()
    }
}

/// Whether a wait was idleness by itself.
fn is_idle(context: &Context<'_, '_>, row: &Wakeup) -> bool {
    let who = context.who(row);
    if who.fd_kind == PARKED {
        return true;
    }
    if who.fd_kind == INTERPRETER {
        return false;
    }
    match context.ends.of(row).map(|end| end.kind) {
        Some(Kind::Client | Kind::Signal) => true,
        Some(Kind::Timer) => who.peer.is_empty() && !who.sleeps(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its id, idle time of its own of 100, and who ended the rest.
    type Told<'t> = (u32, f64, &'t [(u32, f64)]);

    fn settled(threads: &[Told<'_>]) -> Idleness {
        let thread = |(tid, idle_ns, handed): &Told<'_>| {
            let handed = handed.iter().copied().collect();
            (*tid, Thread { idle_ns: *idle_ns, all_ns: 100.0, handed, share: 0.0 })
        };
        let mut idleness = Idleness { threads: threads.iter().map(thread).collect() };
        idleness.settle();
        idleness
    }

    #[test]
    fn workers_are_as_idle_as_their_dispatcher() {
        let pool = settled(&[(1, 90.0, &[]), (2, 0.0, &[(1, 100.0)]), (3, 0.0, &[(2, 80.0), (1, 20.0)])]);
        assert!((pool.of(2).unwrap() - 0.9).abs() < 1e-9 && (pool.of(3).unwrap() - 0.9).abs() < 1e-9);
        assert!((pool.untold_ns() - 20.0).abs() < 1e-9);
    }

    #[test]
    fn those_that_hand_on_a_lock_are_not() {
        // Each sleeps for 6 while it holds the lock, and stands before it for the rest.
        let convoy = settled(&[(2, 0.0, &[(3, 94.0)]), (3, 0.0, &[(2, 94.0)]), (1, 99.0, &[])]);
        assert_eq!((convoy.of(2), convoy.of(9)), (Some(0.0), None));
        assert!((convoy.untold_ns() - 188.0).abs() < 1e-9);
    }
}
