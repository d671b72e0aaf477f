// SPDX-License-Identifier: Apache-2.0
//! Whether a thread that serves all keeps requests waiting by long computations, or by many short ones: those stand in a queue,
//! which somebody else made, who took its CPU, or asked for all at once.

use recording::tables::Request;

use super::paths::Felt;
use crate::case::Case;
use crate::facts::limits::ThreadUse;
use crate::facts::requests::{LATE_NS, Requests};
use crate::statistics::ratio;
use crate::walk::paths::Part;

/// What a thread does while slow requests wait for their turn.
pub(crate) struct WaitsForTurn {
    /// Others that it answers meanwhile, for each of them.
    pub others: f64,
    /// CPU time that it takes for an answer on average, ns.
    pub each_ns: f64,
    /// Of its CPU time meanwhile, what is beyond that for those others.
    pub beyond: f64,
    /// Of the time that they wait, the longest stretch without an answer to anybody.
    pub longest: f64,
}

impl WaitsForTurn {
    /// Of requests that took long at the busiest port, which `thread` serves; `is_computing` are the parts of their paths in which
    /// it computed for others. None = no request waited before its turn.
    pub(crate) fn of(case: &Case, felt: &Felt, thread: &ThreadUse, is_computing: fn(&Part) -> bool) -> Option<Self> {
        let requests = case.fact::<Requests>().ok()?;
        let busiest = requests.busiest()?;
        let of_thread = |r: &&Request| r.is_accepted() && r.port == busiest.port && r.ended_tid == thread.tid;
        let rows: Vec<&Request> = case.recording.rows::<Request>().iter().filter(of_thread).collect();
        let mut answers: Vec<u64> = rows.iter().map(|r| r.t_ns).collect();
        answers.sort_unstable();
        let until = |at: u64| answers.partition_point(|answer| *answer <= at);
        let (mut slow, mut others, mut waited_ns, mut longest_ns) = (0.0, 0.0, 0.0, 0.0);
        for row in rows.iter().filter(|r| r.t_ns.saturating_sub(r.began_ns) as f64 >= LATE_NS) {
            slow += 1.0;
            let meanwhile = answers.get(until(row.began_ns)..until(row.read_ns)).unwrap_or_default();
            others += meanwhile.len() as f64;
            longest_ns += longest_gap(row.began_ns, meanwhile, row.read_ns);
            waited_ns += row.read_ns.saturating_sub(row.began_ns) as f64;
        }
        let computing = ratio(felt.group().share(is_computing), felt.group().share(|part| part.before));
        let each_ns = ratio(thread.on_cpu * case.length_ns(), busiest.response.count * requests.scale());
        let computed_ns = waited_ns * computing;
        (computed_ns > 0.0).then(|| Self {
            others: ratio(others, slow),
            each_ns,
            beyond: 1.0 - ratio(others * each_ns, computed_ns),
            longest: ratio(longest_ns, waited_ns),
        })
    }

    /// Whether they are short: each is nothing that a request would feel, and together they are most of what it waited for.
    pub(crate) fn are_short(&self) -> bool {
        self.each_ns < LATE_NS && (self.beyond < LONG || self.longest < LONG)
    }
}

/// The longest time between two of some moments, ns.
fn longest_gap(from: u64, between: &[u64], to: u64) -> f64 {
    let moments: Vec<u64> = [&[from], between, &[to]].concat();
    moments.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or_default() as f64
}

/// Of the CPU time, beyond what its answers usually take, and of the wait, without an answer to anybody, from which on it is one
/// that takes long. Measured: a loop that computes
/// 60 to 200 ms for one request in 15 to 60 has 69 to 71 %, one that four busy loops keep from its CPU 37 %. One that takes some dozens of new connections at
/// once computes for all of them before it answers, but not for long.
const LONG: f64 = 0.5;
