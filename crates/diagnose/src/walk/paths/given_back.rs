// SPDX-License-Identifier: Apache-2.0
//! When a thread that works for others had done with one of them: it ended the wait of a thread that serves a client. What it did before
//! that was for another client's request, and this one's stood in line.

use std::collections::BTreeMap;

use recording::tables::Wakeup;

use super::whole::Whole;
use crate::syscall::is_loop;
use crate::walk::context::Context;
use crate::walk::futex::is_futex;
use crate::walk::timelines::AT_ONCE_NS;

/// Moments by the thread that gave something back, in the order of time, and to whom.
pub struct GivenBack(BTreeMap<u32, Vec<(f64, u32)>>);

impl GivenBack {
    pub fn new(context: &Context<'_, '_>, whole: &Whole<'_>, rows: &[Wakeup]) -> Self {
        let is_one = |row: &&Wakeup| {
            row.context == "thread"
                && row.waker_pid == row.pid
                && row.waker_tid != row.tid
                && whole.serves(row.tid)
                && !whole.serves(row.waker_tid)
                && is_futex(context.case, row.syscall)
                && context.held_in_turn(row).is_none()
        };
        let mut moments: BTreeMap<u32, Vec<(f64, u32)>> = BTreeMap::new();
        for row in rows.iter().filter(is_one) {
            moments.entry(row.waker_tid).or_default().push((row.t_ns as f64, row.tid));
        }
        // A loop, or one that asks for several at once, has all of them in hand.
        let polls = |tid: u32| {
            context.timelines.waits_of(tid).iter().any(|wait| is_loop(&context.case.syscall(wait.row.syscall)))
        };
        moments.retain(|tid, _| !whole.asks_at_once(*tid) && !polls(*tid));
        moments.values_mut().for_each(|of_thread| of_thread.sort_by(|a, b| a.0.total_cmp(&b.0)));
        Self(moments)
    }

    /// When a thread last gave something back within a span, to none of these two.
    pub fn last(&self, tid: u32, (from, until): (f64, f64), own: [u32; 2]) -> Option<f64> {
        let moments = self.0.get(&tid)?;
        let before = moments[..moments.partition_point(|moment| moment.0 < until)].iter().rev();
        before.take_while(|moment| moment.0 >= from).find(|moment| !own.contains(&moment.1)).map(|moment| moment.0)
    }

    /// Since when a thread was at what it gave back at the end of a span: since it had given something back before that, and waited for
    /// something since. Of several that it gives back one right after the other, all were done together.
    pub fn since(&self, context: &Context<'_, '_>, tid: u32, (from, until): (f64, f64), own: [u32; 2]) -> f64 {
        let waits = context.timelines.waits_of(tid);
        let before = waits[..waits.partition_point(|wait| wait.end() <= until)].iter().rev();
        let mut within = before.take_while(|wait| wait.end() > from);
        // Before a lock of its own it is still at the same.
        let last =
            within.find(|wait| wait.end() - wait.begin() >= AT_ONCE_NS && context.held_in_turn(wait.row).is_none());
        last.and_then(|wait| self.last(tid, (from, wait.begin()), own)).unwrap_or(from)
    }
}

#[cfg(test)]
mod tests {
    use crate::walk::paths::tests::{TIMER, told, wait};

    /// Threads 2 and 3 serve clients, and give their work to thread 9, which sleeps for each of them, one after the other.
    #[test]
    fn what_a_helper_did_for_another_one_is_before_its_turn() {
        let request = |tid: u32, began: u32, end: u32| {
            format!(
                "request t_ns={end}e6 role=accepted port=80 pid=1 began_ns={began}e6 began_tid={tid} read_ns={began}e6 ended_tid={tid}\n"
            )
        };
        let by_helper = "syscall=202 context=thread waker_pid=1 waker_tid=9 waker_comm=t9";
        let rows = |done_ms: f64| {
            [
                request(2, 100, 150),
                request(3, 80, 121),
                wait(2, 149.0, 48.0, by_helper),
                wait(3, done_ms, 35.0, by_helper),
                wait(9, 119.5, 39.0, TIMER),
                wait(9, 148.5, 28.0, TIMER),
            ]
            .concat()
        };
        let parts = told(&rows(120.0));
        let part = |words: &str| parts.iter().find(|part| part.0 == words).map_or(0.0, |part| part.1);
        // Of both: 28 ms for the first one's own sleep, and what of the other one's lies in its time.
        assert_eq!(part("before its turn: t9/1 in nanosleep"), 18.5, "{parts:?}");
        assert_eq!(part("t9/1 in nanosleep"), 28.0 + 34.5, "{parts:?}");
        // Given back together with it: all was done for both.
        let parts = told(&rows(148.9));
        assert!(!parts.iter().any(|part| part.0 == "before its turn: t9/1 in nanosleep"), "{parts:?}");
    }
}
