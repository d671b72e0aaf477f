// SPDX-License-Identifier: Apache-2.0
//! Threads that answer several connections of clients in turn: one for all, or several loops side by side, each with its own.

use std::collections::BTreeMap;

use recording::tables::Request;

use super::paths::one_thread;
use crate::case::Case;
use crate::facts::readers::Readers;
use crate::facts::requests::Requests;
use crate::statistics::share;

/// Of the requests, by whoever read them: a loop answers what it reads, and one that hands it on does not.
const KEEPS: f64 = 0.9;

/// Of the time in which requests lay unread, in those that came while their thread had another one in hand: whoever serves one
/// connection at a time is asked the next thing after its answer.
const BEHIND_ANOTHER: f64 = 0.5;

/// Requests of a thread that tell of it.
const ENOUGH: usize = 5;

/// A thread that requests stand before.
pub(crate) struct Loop {
    /// Process and thread.
    pub thread: (u32, u32),
    /// Such threads, this one included.
    pub of: usize,
}

/// The thread that answers at the main port; of several loops there, the one before which requests lay unread for longest.
pub(crate) fn of(case: &Case, port: u32) -> Option<Loop> {
    if let Some(thread) = one_thread(case, port) {
        return Some(Loop { thread, of: 1 });
    }
    let requests = case.fact::<Requests>().ok()?;
    // Before workers that take a connection at a time, they stand in the accept queue.
    if requests.stood_in_queue(requests.at_port(port)?) {
        return None;
    }
    let mut by: BTreeMap<(u32, u32), Vec<&Request>> = BTreeMap::new();
    let asked = case.recording.rows::<Request>().iter().filter(|row| row.is_of_client() && row.port == port);
    asked.for_each(|row| by.entry((row.pid, row.began_tid)).or_default().push(row));
    let unread: BTreeMap<(u32, u32), Unread> =
        by.iter_mut().map(|(thread, rows)| (*thread, Unread::of(rows))).collect();
    let sum = |ns: fn(&Unread) -> f64| unread.values().map(ns).sum::<f64>();
    let are_loops =
        case.fact::<Readers>().ok()?.kept >= KEEPS && share(sum(|u| u.behind_ns), sum(|u| u.ns)) >= BEHIND_ANOTHER;
    let longest =
        unread.iter().filter(|(thread, _)| by[thread].len() >= ENOUGH).max_by(|a, b| a.1.ns.total_cmp(&b.1.ns))?;
    are_loops.then_some(Loop { thread: *longest.0, of: unread.len() })
}

/// For how long requests lay unread before a thread.
struct Unread {
    ns: f64,
    /// Of that, those that came while it had another one in hand.
    behind_ns: f64,
}

impl Unread {
    fn of(rows: &mut [&Request]) -> Self {
        rows.sort_by_key(|row| row.began_ns);
        let (mut all, mut answered) = (Self { ns: 0.0, behind_ns: 0.0 }, 0);
        for row in rows {
            let ns = row.read_ns.saturating_sub(row.began_ns) as f64;
            all.ns += ns;
            all.behind_ns += if row.began_ns < answered { ns } else { 0.0 };
            answered = answered.max(row.t_ns);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use recording::text::parse;

    use super::*;

    /// Two threads, each of which takes 100 ms for an answer and then reads the next one, that came so many ms after the last.
    fn loops(each_ms: u32, more: &str) -> Option<((u32, u32), usize)> {
        let mut text = format!(
            "meta length_ns=10e9
             exchange role=accepted port=80 stage=response count=40 sum_ns=8e9 length_ns=[200000000] counts=[40]
             {more}\n"
        );
        for nth in 0..20u32 {
            for tid in [1, 2] {
                let (began, read) = (nth * each_ms, nth * each_ms + 90 + tid);
                text += &format!(
                    "request t_ns={}e6 role=accepted port=80 pid=1 began_ns={began}e6 began_tid={tid} read_ns={read}e6 ended_tid={tid}\n",
                    read + 100
                );
            }
        }
        of(&Case::new(&parse(&text).unwrap()), 80).map(|found| (found.thread, found.of))
    }

    #[test]
    fn several_loops_and_threads_with_a_connection_each() {
        assert_eq!(loops(100, ""), Some(((1, 2), 2)));
        assert_eq!(
            loops(250, ""),
            None,
            "the next request comes after the answer, and waits for what the thread does behind it"
        );
        let queued = "connection t_ns=10e9 role=accepted port=80 looks=100 queued=100
             exchange role=accepted port=80 stage=first_read count=40 sum_ns=4e9 length_ns=[100000000] counts=[40]";
        assert_eq!(loops(100, queued), None, "they stand in the accept queue");
    }
}
