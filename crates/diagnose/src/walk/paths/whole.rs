// SPDX-License-Identifier: Apache-2.0
//! What was told in full: requests that began and ended within one burst, and what the target asked meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::{Burst, Request};

use super::owned::Owned;
use crate::case::Case;
use crate::facts::requests::Requests;

/// Requests and questions, by who had to do with them.
pub struct Whole<'r> {
    /// Requests of clients, in the order of their answers.
    pub asked: Vec<&'r Request>,
    /// Their handshakes of TLS, likewise.
    pub shaken: Vec<&'r Request>,
    /// Questions of the target's, by the thread that read the answer, in the order of that.
    questions: BTreeMap<u32, Vec<&'r Request>>,
    /// The same, by whom they were asked for.
    owned: Owned<'r>,
    /// When a thread read or answered any request of a client.
    moments: BTreeMap<u32, Vec<u64>>,
    /// When a process answered any.
    answers: BTreeMap<u32, Vec<u64>>,
    /// When a thread did.
    by_thread: BTreeMap<u32, Vec<u64>>,
    /// The threads of a process that read or answered any.
    serving: BTreeMap<u32, BTreeSet<u32>>,
    /// From when to when a thread had a request that it read or answered, in the order of the ends.
    held: BTreeMap<u32, Vec<(u64, u64)>>,
    /// When a thread was awake for certain: it read or wrote something of any of these.
    awake: BTreeMap<u32, Vec<u64>>,
    /// Ports at which clients send what they ask in parts.
    in_parts: BTreeSet<u32>,
    /// Of each thread that read or answered any, one of the clients, and whether there were others.
    clients: BTreeMap<u32, (&'r str, bool)>,
}

/// Response time, ns.
pub fn length_ns(request: &Request) -> u64 {
    request.t_ns.saturating_sub(request.began_ns)
}

impl<'r> Whole<'r> {
    pub fn new(case: &Case, rows: &'r [Request]) -> Self {
        let bursts = joined(case.recording.rows::<Burst>());
        let in_burst = |request: &Request| {
            let last = bursts.partition_point(|(from, _)| *from <= request.began_ns).checked_sub(1);
            last.is_some_and(|at| request.t_ns <= bursts[at].1)
        };
        let awake = awake(rows);
        let requests = case.fact::<Requests>().ok();
        let streams = |row: &Request| requests.as_ref().is_some_and(|requests| requests.streams_at(row.port));
        let (mut asked, made): (Vec<&Request>, Vec<&Request>) = rows.iter().partition(|row| row.is_accepted());
        asked.retain(|row| !streams(row));
        let owned = Owned::new(&asked, &made);
        let mut questions: BTreeMap<u32, Vec<&Request>> = BTreeMap::new();
        made.into_iter().for_each(|row| questions.entry(row.ended_tid).or_default().push(row));
        questions.values_mut().for_each(|of_thread| of_thread.sort_by_key(|row| row.read_ns));
        let mut moments: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for row in &asked {
            moments.entry(row.began_tid).or_default().push(row.read_ns);
            moments.entry(row.ended_tid).or_default().push(row.t_ns);
        }
        let mut serving: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        asked.iter().for_each(|row| serving.entry(row.pid).or_default().extend([row.began_tid, row.ended_tid]));
        let mut answers: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let mut by_thread: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for row in &asked {
            answers.entry(row.pid).or_default().push(row.t_ns);
            by_thread.entry(row.ended_tid).or_default().push(row.t_ns);
        }
        moments
            .values_mut()
            .chain(answers.values_mut())
            .chain(by_thread.values_mut())
            .for_each(|times| times.sort_unstable());
        let (held, clients) = (held(&asked), clients(&asked));
        asked.retain(|row| in_burst(row));
        asked.sort_by_key(|row| row.t_ns);
        let (shaken, asked) = asked.into_iter().partition(|row| row.handshake);
        let in_parts = requests.iter().flat_map(|r| &r.endpoints).filter(|e| e.accepted && e.is_in_parts());
        let in_parts = in_parts.map(|endpoint| endpoint.port).collect();
        Self { asked, shaken, questions, owned, moments, answers, by_thread, serving, held, awake, in_parts, clients }
    }

    /// The question of which a thread read the answer last within a span, if it was asked then too.
    pub fn question(&self, tid: u32, (from, until): (f64, f64)) -> Option<&'r Request> {
        let of_thread = self.questions.get(&tid)?;
        let next = of_thread.partition_point(|row| row.read_ns as f64 <= until);
        let last = of_thread.get(next.checked_sub(1)?)?;
        (last.began_ns as f64 >= from && last.read_ns as f64 > from).then_some(*last)
    }

    /// The last question of a request of which the answer was read within a span, if it was asked then too.
    pub fn own_question(&self, request: &Request, span: (f64, f64)) -> Option<&'r Request> {
        self.owned.last(request, span)
    }

    /// When a thread last had to do with some request of a client within a span, both ends left out.
    pub fn moment(&self, tid: u32, span: (f64, f64)) -> Option<f64> {
        last_within(self.moments.get(&tid)?, span)
    }

    /// When a thread was last seen awake within a span, both ends left out.
    pub fn seen_awake(&self, tid: u32, span: (f64, f64)) -> Option<f64> {
        last_within(self.awake.get(&tid)?, span)
    }

    /// When a thread first answered a client at some time or after it.
    pub fn answered_after(&self, tid: u32, ns: u64) -> Option<u64> {
        let times = self.by_thread.get(&tid)?;
        times.get(times.partition_point(|at| *at < ns)).copied()
    }

    /// Whether a thread asked anybody while an earlier question of its own was under way.
    pub fn asks_at_once(&self, tid: u32) -> bool {
        let of_thread = self.questions.get(&tid).map_or(&[][..], Vec::as_slice);
        of_thread.windows(2).any(|two| two[1].began_ns < two[0].t_ns)
    }

    /// Whether all that a thread had to do with came over one connection, as of one that is there for it alone.
    pub fn serves_one_client(&self, tid: u32) -> bool {
        self.clients.get(&tid).is_some_and(|(_, several)| !several)
    }

    /// Whether a thread reads what clients ask, or answers it.
    pub fn serves(&self, tid: u32) -> bool {
        self.moments.contains_key(&tid)
    }

    /// Whether no other thread of a process does.
    pub fn serves_alone(&self, pid: u32, tid: u32) -> bool {
        self.serving.get(&pid).is_some_and(|threads| threads.iter().eq([&tid]))
    }

    /// Whether a thread had a request in hand at some time. The last one is until its turn ends, which is not seen here: who answers
    /// first may give back a lock after that.
    pub fn in_hand(&self, tid: u32, ns: f64, is_same_turn: impl Fn(u64) -> bool) -> bool {
        let turns = self.held.get(&tid).map_or(&[][..], Vec::as_slice);
        let (before, after) = turns.split_at(turns.partition_point(|(_, ended)| (*ended as f64) < ns));
        after.iter().take(MOST_AT_ONCE).any(|(read, _)| *read as f64 <= ns)
            || before.last().is_some_and(|(_, ended)| is_same_turn(*ended))
    }

    /// Whether what came of a request after its first bytes was the rest of it.
    pub fn is_in_parts(&self, request: &Request) -> bool {
        self.in_parts.contains(&request.port)
    }

    /// Whether a process answered other requests within a span.
    pub fn answered_others(&self, pid: u32, span: (f64, f64)) -> bool {
        self.answers.get(&pid).is_some_and(|times| last_within(times, span).is_some())
    }
}

/// The clients of each thread: one of them, and whether there were others.
fn clients<'r>(asked: &[&'r Request]) -> BTreeMap<u32, (&'r str, bool)> {
    let mut clients: BTreeMap<u32, (&str, bool)> = BTreeMap::new();
    for row in asked {
        for tid in [row.began_tid, row.ended_tid] {
            let known = clients.entry(tid).or_insert((&row.peer, false));
            known.1 |= known.0 != row.peer;
        }
    }
    clients
}

/// Requests in hand on average, and no more than there are CPUs.
pub fn needed(case: &Case) -> f64 {
    let Ok(requests) = case.fact::<Requests>() else { return 1.0 };
    let accepted = requests.endpoints.iter().filter(|endpoint| endpoint.accepted);
    let in_hand: f64 = accepted.map(|endpoint| requests.at_once(&endpoint.service)).sum();
    let allowed = match case.recording.meta.target.allowed_cpus.len() {
        0 => f64::from(case.recording.meta.host.cpus),
        some => some as f64,
    };
    in_hand.min(allowed).max(1.0)
}

/// Requests of one thread that are looked through for one that it has in hand.
const MOST_AT_ONCE: usize = 64;

/// From when to when each thread had a request: whoever answers it, and whoever read it, if that is another one.
fn held(asked: &[&Request]) -> BTreeMap<u32, Vec<(u64, u64)>> {
    let mut held: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for row in asked {
        held.entry(row.ended_tid).or_default().push((row.read_ns, row.t_ns));
        if row.began_tid != row.ended_tid {
            held.entry(row.began_tid).or_default().push((row.read_ns, row.t_ns));
        }
    }
    held.values_mut().for_each(|turns| turns.sort_by_key(|(_, ended)| *ended));
    held
}

/// When each thread read or wrote something.
fn awake(rows: &[Request]) -> BTreeMap<u32, Vec<u64>> {
    let mut awake: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for row in rows {
        let is_asked = row.is_accepted();
        let (began, ended) = if is_asked { (row.read_ns, row.t_ns) } else { (row.began_ns, row.read_ns) };
        awake.entry(row.began_tid).or_default().push(began);
        awake.entry(row.ended_tid).or_default().push(ended);
    }
    awake.values_mut().for_each(|times| times.sort_unstable());
    awake
}

fn last_within(times: &[u64], (from, until): (f64, f64)) -> Option<f64> {
    let next = times.partition_point(|at| (*at as f64) < until);
    let last = *times.get(next.checked_sub(1)?)? as f64;
    (last > from).then_some(last)
}

/// Bursts from begin to end; those that follow on one another without a break are one.
fn joined(bursts: &[Burst]) -> Vec<(u64, u64)> {
    const A_BREAK_NS: u64 = 100_000;
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for burst in bursts {
        let from = burst.t_ns.saturating_sub(burst.length_ns);
        match joined.last_mut() {
            Some((_, to)) if from <= *to + A_BREAK_NS => *to = burst.t_ns,
            _ => joined.push((from, burst.t_ns)),
        }
    }
    joined
}
