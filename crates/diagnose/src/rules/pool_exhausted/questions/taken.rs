// SPDX-License-Identifier: Apache-2.0
//! Whether requests stand before the connections to somebody whom the program asks, and whether all of these are taken.

use std::collections::BTreeMap;

use recording::tables;

use crate::case::{Case, SLICE_NS};
use crate::facts::asked_at_once::{AskedAtOnce, AtOnce};
use crate::facts::connections::Connections;
use crate::facts::requests::{Endpoint, LATE_NS, Requests};
use crate::facts::unexplained::Unexplained;
use crate::judgement::one_each;
use crate::judgement::paths::{asks_a_peer, stands_before_peers, waits_for_a_peer};
use crate::statistics::{ratio, share};
use crate::walk::Walk;
use crate::walk::paths::{Meanwhile, Part, RequestPaths, What};

/// Exchanges from which on sums say something.
const ENOUGH: f64 = 10.0;

/// Requests followed from end to end, from which on their paths say something.
const FOLLOWED: u64 = 10;

/// Questions for one request: with fewer, most requests do without.
const MOSTLY: f64 = 0.5;

/// Of the connections to whom it asks, on average: before fewer no queue is long.
const TAKEN: f64 = 0.7;

/// So many deviations of a number that comes by chance may be free on average: with a limit, hardly any is, and without one, a pool is
/// as large as its largest need was, which is some deviations more than the usual.
const FREE: f64 = 0.5;

/// Looks at connections, of which the most says something.
const LOOKS: f64 = 30.0;

/// Of the most questions at once, on average.
const NEARLY_ALWAYS: f64 = 0.8;

/// Of the questions that Little's law finds, those that bursts told.
const NEARLY_ALL: f64 = 0.9;

/// Of the questions, those that begin when another is answered, and of the answers to clients, those that come then; by chance it is
/// one in four.
const HANDED_ON: f64 = 0.6;

/// Of the requests in hand, in the queue; and of their time, where nothing else is seen.
const MIN_SHARE: f64 = 0.5;

/// Connections at the least, of a pool that threads share.
const SEVERAL: f64 = 1.5;

/// In the queue on average.
const MIN_QUEUE: f64 = 1.0;

/// A pool of connections of which none is free.
pub(super) struct Taken<'r> {
    /// Whom they lead to.
    pub(super) peer: &'r Endpoint,
    /// How many there are, on average.
    pub(super) open: f64,
    /// Questions under way there, on average.
    pub(super) asked: f64,
    /// The same as looks found it: on average, and at most.
    seen: (f64, f64),
    /// And at every moment of the bursts.
    pub(super) counted: AtOnce,
    /// Requests in hand, on average.
    pub(super) in_hand: f64,
    /// Of those, in the queue.
    pub(super) queued: f64,
    /// How long each stands there, ns.
    pub(super) each_ns: f64,
    /// There are always as many connections.
    is_kept: bool,
    /// Others whom it asks, of which the same is true: one of several that share the load.
    pub(super) others: usize,
}

/// The pool that requests stand before, if there is one.
pub(super) fn taken<'r>(case: &Case, requests: &'r Requests) -> Option<Taken<'r>> {
    let clients = requests.main()?;
    if clients.is_mixed() || clients.response.count < ENOUGH {
        return None;
    }
    let stand = stand(case)?;
    let (connections, known) = (case.fact::<Connections>().ok()?, case.fact::<Unexplained>().ok()?);
    let counted = case.fact::<AskedAtOnce>().ok()?;
    let at_once = |endpoint: &Endpoint| requests.at_once(&endpoint.response);
    let asked = || requests.endpoints.iter().filter(|e| !e.accepted);
    let in_hand = requests.at_once(&clients.service);
    let queued = in_hand - asked().map(at_once).sum::<f64>() - known.queued - known.asking;
    let each_ns = clients.service.mean_ns() * share(queued.max(0.0), in_hand);
    if queued < MIN_QUEUE || share(queued, in_hand) < MIN_SHARE || each_ns < LATE_NS {
        return None;
    }
    let held = |name: &str| connections.peers.iter().find(|(peer, _)| peer == name).map(|(_, held)| held.clone());
    let is_told = connections.looks >= LOOKS;
    let pools = asked().filter(|e| !e.is_mixed() && e.response.count >= ENOUGH);
    let pool = |peer: &'r Endpoint| {
        let held = held(&peer.name).unwrap_or_default();
        let seen = if is_told { (held.unanswered, held.most_unanswered) } else { (0.0, 0.0) };
        Taken {
            peer,
            open: held.open,
            asked: at_once(peer),
            seen,
            counted: counted.0.get(&peer.name).copied().unwrap_or_default(),
            in_hand,
            queued,
            each_ns,
            is_kept: is_kept(case, &peer.name),
            others: 0,
        }
    };
    let full: Vec<Taken<'_>> = pools.map(pool).filter(|pool| pool.is_full() && stand.is_before(pool)).collect();
    most_of(full, clients.response.count)
}

/// The fullest of some, if most of so many requests ask one of them.
fn most_of(full: Vec<Taken<'_>>, requests: f64) -> Option<Taken<'_>> {
    let questions: f64 = full.iter().map(|pool| pool.peer.response.count).sum();
    let others = full.len().saturating_sub(1);
    let fullest = full.into_iter().max_by(|a, b| a.asked.total_cmp(&b.asked))?;
    (questions >= requests * MOSTLY).then_some(Taken { others, ..fullest })
}

/// Of the connections to a peer, from one slice to another: a pool keeps them.
const STEADY: f64 = 0.05;

/// Slices, from which on it is no chance that each has as many.
const SEVERAL_SLICES: f64 = 3.0;

/// Whether there are as many connections to a peer in each slice.
fn is_kept(case: &Case, peer: &str) -> bool {
    let rows = case.recording.rows::<tables::Connection>();
    let mut slices: BTreeMap<u64, f64> = rows.iter().map(|row| (row.t_ns, 0.0)).collect();
    for row in rows.iter().filter(|row| !row.is_accepted() && row.peer == peer) {
        *slices.entry(row.t_ns).or_default() += ratio(row.open as f64, row.looks as f64);
    }
    let least = slices.values().copied().fold(f64::INFINITY, f64::min);
    let most = slices.values().copied().fold(0.0, f64::max);
    most > 0.0 && least >= most * (1.0 - STEADY) && case.length_ns() >= SEVERAL_SLICES * SLICE_NS as f64
}

/// Where requests stand for most of their time.
enum Stand {
    /// Inside a loop or a runtime, where the kernel sees nothing.
    Inside,
    /// Their threads wait for others that ask this peer.
    Behind(String),
    /// They wait for a thread that helps, which asks this peer for one after the other.
    InLine(String),
}

impl Stand {
    /// Of threads that wait for each other, one connection is a lock; and so it is where never more than one of them asks.
    fn is_before(&self, pool: &Taken<'_>) -> bool {
        match self {
            Self::Inside => true,
            Self::InLine(peer) => pool.peer.name == *peer,
            Self::Behind(peer) => {
                pool.peer.name == *peer
                    && pool.open >= SEVERAL
                    && (pool.has_no_connection_free() || pool.most() >= SEVERAL)
            }
        }
    }
}

fn stand(case: &Case) -> Option<Stand> {
    let (walk, paths) = (case.fact::<Walk>().ok()?, case.fact::<RequestPaths>().ok()?);
    let all = &paths.main()?.all;
    if all.requests < FOLLOWED {
        return None;
    }
    // A loop that waits for an answer waits for anybody's: whether that is the request's own, its path does not tell.
    let inside =
        |part: &Part| matches!(part.what, What::Inside { meanwhile: Meanwhile::Unknown, .. }) || asks_a_peer(part);
    let has_threads = || walk.has_serving_threads() || one_each::threads(case).is_some();
    if all.share(inside) >= MIN_SHARE && !has_threads() {
        return Some(Stand::Inside);
    }
    let (mut behind, mut in_line): (BTreeMap<&str, f64>, BTreeMap<&str, f64>) = (BTreeMap::new(), BTreeMap::new());
    for part in &all.parts {
        let What::Waits(chain) = &part.what else { continue };
        if stands_before_peers(part) {
            if let Some(holder) = chain.links.iter().skip(1).find(|link| !link.who.peer.is_empty()) {
                *behind.entry(&holder.who.peer).or_default() += part.ns;
            }
        } else if part.before && waits_for_a_peer(part) {
            *in_line.entry(&chain.links[0].who.peer).or_default() += part.ns;
        }
    }
    let most = |by: BTreeMap<&str, f64>| {
        let (peer, ns) = by.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (ns >= all.ns * MIN_SHARE).then(|| peer.to_string())
    };
    most(behind).map(Stand::Behind).or_else(|| most(in_line).map(Stand::InLine))
}

/// Whether there are nearly always as many as there are at most.
fn is_near((usual, most): (f64, f64)) -> bool {
    most >= 1.0 && usual >= most * NEARLY_ALWAYS && most - usual <= usual.sqrt() * FREE
}

impl Taken<'_> {
    fn is_full(&self) -> bool {
        self.has_no_connection_free() || self.is_at_its_most() || self.is_handed_on()
    }

    /// Never more at once than a small number, and nearly always as many: somebody counts. By chance, the most of many looks is far
    /// above what is usual. Of quick answers the looks miss too many.
    fn is_at_its_most(&self) -> bool {
        is_near(self.seen) && self.peer.response.mean_ns() >= LATE_NS
    }

    /// The same at every moment of the bursts, the next question begins when another is answered, and so do answers to clients: what
    /// goes on beside requests, as a consumer of a queue, has its own time. Where rows were lost, fewer were counted than there were.
    pub(super) fn is_handed_on(&self) -> bool {
        let counted = &self.counted;
        let are_coupled = counted.handed_on >= HANDED_ON && counted.passed_on >= HANDED_ON;
        self.is_whole() && is_near((counted.usual, counted.most)) && are_coupled
    }

    /// Whether about all questions were seen one by one.
    fn is_whole(&self) -> bool {
        self.counted.questions >= LOOKS && self.counted.usual >= self.asked * NEARLY_ALL
    }

    /// Whether looks at the sockets, which are another source, say the same.
    pub(super) fn has_two_witnesses(&self) -> bool {
        self.has_no_connection_free() || self.is_handed_on() && is_near(self.seen)
    }

    /// Questions to this peer at most.
    pub(super) fn most(&self) -> f64 {
        if self.is_handed_on() { self.counted.most } else { self.seen.1 }
    }

    pub(super) fn has_no_connection_free(&self) -> bool {
        // A pool has one connection at least, and keeps what it has: where each question has one of its own, none is ever free.
        let is_for_clients = !self.is_whole() || self.counted.passed_on >= HANDED_ON;
        self.is_kept
            && is_for_clients
            && self.asked >= self.open.max(1.0) * TAKEN
            && self.open - self.asked <= self.asked.sqrt() * FREE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn a_pool_keeps_what_it_has() {
        let kept = |seconds: u32, open: &[u32]| {
            let mut text = format!("meta length_ns={seconds}e9\n");
            for (slice, open) in (1..).zip(open) {
                text += &format!("connection t_ns={slice}e9 role=accepted port=80 looks=10 open=10\n");
                if *open > 0 {
                    text += &format!("connection t_ns={slice}e9 role=made peer=a looks=10 open={open}\n");
                }
            }
            is_kept(&Case::new(&parse(&text).unwrap()), "a")
        };
        assert!(kept(3, &[20, 20, 20]) && !kept(3, &[20, 14, 20]));
        assert!(!kept(1, &[20]), "one slice is as large as the smallest and the largest");
        assert!(!kept(3, &[20, 0, 20]), "there was none for a while");
        assert!(!kept(3, &[0, 0, 0]));
    }
}
