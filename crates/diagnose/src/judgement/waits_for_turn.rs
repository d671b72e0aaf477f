// SPDX-License-Identifier: Apache-2.0
//! Whether a thread that serves all keeps requests waiting by long computations, or by many short ones: those stand in a queue,
//! which somebody else made, who took its CPU, or asked for all at once.

use recording::tables::Request;

use super::felt::Felt;
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
    /// Of the time that they wait, what lies in answers that take long, each by itself.
    pub in_long: f64,
}

impl WaitsForTurn {
    /// Of requests that took long at the main port, which `thread` serves; `is_computing` are the parts of their paths in which
    /// it computed for others. None = no request waited before its turn.
    pub(crate) fn of(case: &Case, felt: &Felt, thread: &ThreadUse, is_computing: fn(&Part) -> bool) -> Option<Self> {
        let requests = case.fact::<Requests>().ok()?;
        let main = requests.main()?;
        let of_thread = |r: &&Request| r.is_of_client() && r.port == main.port && r.ended_tid == thread.tid;
        let rows: Vec<&Request> = case.recording.rows::<Request>().iter().filter(of_thread).collect();
        let mut answers: Vec<u64> = rows.iter().map(|r| r.t_ns).collect();
        answers.sort_unstable();
        let long = long_ones(&rows);
        let until = |at: u64| answers.partition_point(|answer| *answer <= at);
        let (mut slow, mut others, mut waited_ns, mut longest_ns, mut in_long_ns) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for row in rows.iter().filter(|r| r.t_ns.saturating_sub(r.began_ns) as f64 >= LATE_NS) {
            slow += 1.0;
            let meanwhile = answers.get(until(row.began_ns)..until(row.read_ns)).unwrap_or_default();
            others += meanwhile.len() as f64;
            longest_ns += longest_gap(row.began_ns, meanwhile, row.read_ns);
            in_long_ns += within(&long, (row.began_ns, row.read_ns));
            waited_ns += row.read_ns.saturating_sub(row.began_ns) as f64;
        }
        let computing = ratio(felt.group().share(is_computing), felt.group().share(|part| part.before));
        let each_ns = ratio(thread.on_cpu * case.length_ns(), main.response.count * requests.scale());
        let computed_ns = waited_ns * computing;
        (computed_ns > 0.0).then(|| Self {
            others: ratio(others, slow),
            each_ns,
            beyond: 1.0 - ratio(others * each_ns, computed_ns),
            longest: ratio(longest_ns, waited_ns),
            in_long: if ran_when_it_wanted(thread) { ratio(in_long_ns, waited_ns) } else { 0.0 },
        })
    }

    /// Whether they are short: each is nothing that a request would feel, and together they are most of what it waited for.
    pub(crate) fn are_short(&self) -> bool {
        // What is computed for no answer, as by a timer of the loop, is told by the sums alone.
        self.in_long < LONG && self.each_ns < LATE_NS && (self.beyond < LONG || self.longest < LONG)
    }
}

/// When a thread was at an answer that took it long, in the order of time. An answer begins when what was asked is read, or when the
/// one before it is written. Those that were read before it and follow on it at once share that time: a loop may read for many
/// before it answers the first.
pub(crate) fn long_ones(answered: &[&Request]) -> Vec<(u64, u64)> {
    let mut rows = answered.to_vec();
    rows.sort_by_key(|row| row.t_ns);
    let began = |at: usize| rows[at].read_ns.max(at.checked_sub(1).map_or(0, |before| rows[before].t_ns));
    let length = |at: usize| rows[at].t_ns.saturating_sub(began(at));
    let is_long = |at: &usize| {
        // First: of those there are few, so that what follows on them is not looked through again and again.
        let of_one = length(*at);
        of_one as f64 >= LATE_NS && {
            let behind = (at + 1..rows.len()).take_while(|next| length(*next).saturating_mul(AT_ONCE) <= of_one);
            let together = behind.take_while(|next| rows[*next].read_ns <= rows[*at].t_ns).count();
            of_one as f64 / (1 + together) as f64 >= LATE_NS
        }
    };
    (0..rows.len()).filter(is_long).map(|at| (began(at), rows[at].t_ns)).collect()
}

/// An answer that takes one part in so many of the time of the one before follows on it at once.
const AT_ONCE: u64 = 10;

/// How much of a span lies in others, ns.
fn within(spans: &[(u64, u64)], (from, to): (u64, u64)) -> f64 {
    let first = spans.partition_point(|span| span.1 <= from);
    let over = spans[first..].iter().take_while(|span| span.0 < to);
    over.map(|span| span.1.min(to).saturating_sub(span.0.max(from)) as f64).sum()
}

/// Whether a thread hardly waited for a CPU: else the time between two answers is not what it computed.
fn ran_when_it_wanted(thread: &ThreadUse) -> bool {
    thread.on_cpu >= thread.demand * RAN
}

/// Of the time in which it wanted one.
const RAN: f64 = 0.8;

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

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    /// When which answers took long: of requests by their read and their answer, ms.
    fn long(requests: &[(f64, f64)]) -> Vec<(u64, u64)> {
        let row = |(read, answered): &(f64, f64)| {
            format!("request role=accepted port=80 ended_tid=1 read_ns={:.0} t_ns={:.0}\n", read * 1e6, answered * 1e6)
        };
        let recording = parse(&requests.iter().map(row).collect::<String>()).unwrap();
        let spans = long_ones(&recording.rows::<Request>().iter().collect::<Vec<_>>());
        spans.into_iter().map(|(from, to)| (from / 1_000_000, to / 1_000_000)).collect()
    }

    #[test]
    fn one_that_takes_long_and_those_that_stood_behind_it() {
        let behind = (1..=30).map(|nth| (100.0 + f64::from(nth) * 0.1, 100.05 + f64::from(nth) * 0.1));
        let all: Vec<(f64, f64)> = [(9.0, 9.2), (20.0, 100.0)].into_iter().chain(behind).collect();
        assert_eq!(long(&all), [(20, 100)]);
    }

    #[test]
    fn many_that_are_read_before_the_first_is_answered() {
        let together = (0..30).map(|nth| (20.0 + f64::from(nth) * 0.01, 100.0 + f64::from(nth) * 0.01));
        assert_eq!(long(&together.collect::<Vec<_>>()), []);
    }

    #[test]
    fn a_queue_of_short_ones() {
        let queue = (0..60).map(|nth| (f64::from(nth) * 3.0, f64::from(nth) * 3.0 + 2.9));
        assert_eq!(long(&queue.collect::<Vec<_>>()), []);
        assert_eq!(long(&[(0.0, 12.0), (12.0, 24.0)]), [(0, 12), (12, 24)], "each takes long by itself");
    }
}
