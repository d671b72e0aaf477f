// SPDX-License-Identifier: Apache-2.0
//! Active time: what the target's threads did but wait for work. They wanted a CPU, or waited for somebody, by chain.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::Wakeup;

use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::facts::connections::Connections;
use crate::facts::requests::Requests;
use crate::ledger::threads::Threads;
use crate::statistics::{ratio, share};
use crate::syscall::{Family, family};
use crate::walk::chains::{Chain, Nature};
use crate::walk::clients::Clients;
use crate::walk::{DNS, HAND_OFF, Kind, LOCK, TIMED, Walk, Who, kind_of_thread};

/// A thread that serves clients and sleeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sleeper {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Command name.
    pub comm: String,
    /// The call that it sleeps in.
    pub call: String,
    /// Time in sleeps of its own, ns.
    pub slept_ns: f64,
    /// Sleeps that were picked.
    pub sleeps: u64,
    /// Waits that a client ended, of those picked; 0 = it takes no requests, or those never let it wait.
    pub clients: u64,
}

/// The target's active time.
pub struct Waiting {
    /// CPU demand: time in which its threads had a CPU or wanted one, ns.
    pub demand_ns: f64,
    /// Of that, without one, ns.
    pub queued_ns: f64,
    /// Time in which they waited for somebody, ns.
    pub waiting_ns: f64,
    /// Whether a client asked the target for anything.
    pub serves: bool,
    /// Time in which they were blocked, and it cannot be told whether idle or not, ns.
    pub untold_ns: f64,
    /// Chains of the waiting, those that explain most first.
    pub chains: Vec<Chain>,
    /// Whom that cannot be told of, with most of it; empty = nobody has a name.
    pub untold_of: String,
    /// Processes of which some wait was seen, and whether a thread of the target ended one: those it asked for something.
    pub asked: BTreeMap<u32, bool>,
    /// Threads that sleep by themselves, by time slept.
    pub sleepers: Vec<Sleeper>,
    /// Time before locks whose holders mostly waited for clients, ns: workers that take turns to listen.
    pub listening_ns: f64,
    /// Whether clients came by other ways than TCP too.
    pub other_clients: bool,
}

impl Fact for Waiting {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let walk = case.fact::<Walk>()?;
        let ledger = case.fact::<Threads>()?;
        let serving = serving(case, &walk, &*case.fact()?);
        let in_hand = serving.is_empty() && is_kept_busy(case);
        let serves = in_hand
            || walk.chains.iter().any(|c| c.end.kind == Kind::Client && walk.target.contains(&c.links[0].who.pid));
        let (mut chains, mut untold) = (Vec::new(), Vec::new());
        let turns = listening(&walk.chains);
        let mut listening_ns = 0.0;
        // Nobody asked it for anything, as far as is seen: it may wait for work there.
        let is_asked = in_hand || is_known_to_be_asked(case)?;
        let has_work = |chain: &Chain| in_hand || is_asked && serving.contains(&kind(&chain.links[0].who));
        for chain in &walk.chains {
            match chain.nature() {
                Nature::Waiting if turns.contains(&chain.links[0].who) => listening_ns += chain.ns,
                Nature::Waiting if !has_work(chain) && is_maybe_idle(chain) => untold.push(chain),
                Nature::Waiting => chains.push(chain.clone()),
                Nature::Untold => untold.push(chain),
                Nature::Idle | Nature::HandOver => {}
            }
        }
        let mut asked = BTreeMap::new();
        for row in case.recording.rows::<Wakeup>() {
            // Nobody can be asked in a sleep: what ended that was an interrupt in the middle of whatever the target did.
            let by_accident = family(&case.syscall(row.syscall)) == Family::Sleep
                && row.context == "thread"
                && walk.target.contains(&row.waker_pid);
            *asked.entry(row.pid).or_default() |= row.asked > u32::from(by_accident);
        }
        Ok(Self {
            demand_ns: ledger.total.demand_ns(),
            queued_ns: ledger.total.waiting_for_cpu_ns(),
            serves,
            listening_ns,
            waiting_ns: sum(&chains),
            untold_ns: sum(untold.iter().copied()),
            untold_of: untold.first().map_or(String::new(), |c| c.links[0].who.peer.clone()),
            chains,
            asked,
            sleepers: sleepers(case, &walk, &*case.fact()?),
            other_clients: case.fact::<Clients>()?.come_otherwise(case),
        })
    }
}

/// A process and the name of some of its threads without their numbers.
type ThreadKind = (u32, String);

fn kind(who: &Who) -> ThreadKind {
    (who.pid, who.comm.clone())
}

/// Waits for what is held in turn that are mostly idleness: whoever holds it waits for its client, to listen or in a transaction.
fn listening(chains: &[Chain]) -> BTreeSet<Who> {
    let mut locks: BTreeMap<&Who, (f64, f64)> = BTreeMap::new();
    for chain in chains.iter().filter(|chain| [LOCK, HAND_OFF].contains(&chain.links[0].who.fd_kind.as_str())) {
        let (idle, waiting) = locks.entry(&chain.links[0].who).or_default();
        match chain.nature() {
            Nature::Idle => *idle += chain.ns,
            Nature::Waiting => *waiting += chain.ns,
            Nature::HandOver | Nature::Untold => {}
        }
    }
    locks.into_iter().filter(|(_, (idle, waiting))| idle > waiting).map(|(who, _)| who.clone()).collect()
}

/// Threads that take part in serving clients: those that clients wake, and those that are woken by one that takes part. A
/// consumer beside them that nobody hands anything takes its work from elsewhere.
fn serving(case: &Case, walk: &Walk, clients: &Clients) -> BTreeSet<ThreadKind> {
    let rows = || case.recording.rows::<Wakeup>().iter().filter(|row| walk.target.contains(&row.pid));
    let of = |row: &Wakeup| (row.pid, kind_of_thread(&row.comm));
    let mut serving: BTreeSet<ThreadKind> = rows().filter(|row| clients.ended(case, row)).map(of).collect();
    let handed = rows().filter(|row| row.context == "thread" && walk.target.contains(&row.waker_pid));
    let mut given: BTreeMap<ThreadKind, BTreeSet<ThreadKind>> = BTreeMap::new();
    handed.for_each(|row| {
        given.entry((row.waker_pid, kind_of_thread(&row.waker_comm))).or_default().insert(of(row));
    });
    let mut new: Vec<ThreadKind> = serving.iter().cloned().collect();
    while let Some(kind) = new.pop() {
        for next in given.remove(&kind).into_iter().flatten() {
            if serving.insert(next.clone()) {
                new.push(next);
            }
        }
    }
    serving
}

/// Requests in hand on average from which on there is nearly always one.
const ALWAYS: f64 = 0.8;

/// Of the window, for which answers had been owed on average: above, clients rather wait for news than for an answer.
const AGE: f64 = 0.25;

/// Whether the target nearly always has a request of a client in hand, and answers them: one whose clients ask again as soon
/// as they have their answer finds the next request without waiting for it, so that no client ever wakes it. That is part of what
/// active time is, and no opinion on it: without, all of its waits would count as idleness.
fn is_kept_busy(case: &Case) -> bool {
    let busy = |c: &Connections| c.accepted.in_hand() >= ALWAYS && c.accepted.late_ns <= case.length_ns() * AGE;
    case.fact::<Connections>().is_ok_and(|c| c.tells() && busy(&c))
}

/// Answers from which on more was asked than a health check.
const ENOUGH: f64 = 10.0;

/// Whether more is known of what clients ask than that some came: their answers, connections that stand, or that they come by another
/// way. A consumer of somebody else's news whose only client is a health check waits for those news.
fn is_known_to_be_asked(case: &Case) -> Result<bool, Gap> {
    let Ok(requests) = case.fact::<Requests>() else { return Ok(true) };
    let answered = requests.endpoints.iter().any(|e| e.accepted && e.response.count * requests.scale() >= ENOUGH);
    let stand = case.fact::<Connections>().is_ok_and(|connections| connections.tells());
    Ok(answered || stand || !requests.streams.is_empty() || case.fact::<Clients>()?.come_otherwise(case))
}

/// Time of chains, ns; of none it is a positive zero.
pub fn sum<'c>(chains: impl IntoIterator<Item = &'c Chain>) -> f64 {
    chains.into_iter().map(|c| c.ns).fold(0.0, |sum, ns| sum + ns)
}

/// Whether the other end of the target's own connection may have had nothing to say: nothing is known of it, or its event
/// loop did nothing but wait.
fn is_maybe_idle(chain: &Chain) -> bool {
    let (first, last) = (&chain.links[0].who, chain.links.last().map(|link| &link.who));
    // In a loop, or before a condition that somebody else makes true.
    let is_timed = |who: &Who| chain.links.len() > 1 && who.fd_kind == TIMED;
    let waits_for_work = last.is_some_and(|who| family(&who.call) == Family::Poll || is_timed(who));
    match chain.end.kind {
        // Nobody waits for work there.
        _ if first.fd_kind == DNS => false,
        Kind::Packet | Kind::Unseen => true,
        Kind::Timer => !first.peer.is_empty() && waits_for_work,
        _ => false,
    }
}

impl Waiting {
    /// The share that some time has in active time, where the ledger says how long, of which `blocked_ns` was
    /// blocked: the walk, which picks its waits, says only what else there was.
    pub fn share_of_exact(&self, ns: f64, blocked_ns: f64) -> f64 {
        share(ns, self.demand_ns + self.waiting_ns.max(blocked_ns))
    }

    /// Share of the time that was neither idleness nor waiting for a CPU, which is a cause of its own.
    pub fn share_without_queue(&self, ns: f64) -> f64 {
        share(ns, self.demand_ns - self.queued_ns + self.waiting_ns)
    }

    /// Active time, ns.
    pub fn active_ns(&self) -> f64 {
        self.demand_ns + self.waiting_ns
    }

    /// Share of the active time.
    pub fn share(&self, ns: f64) -> f64 {
        share(ns, self.active_ns())
    }

    /// Chains of a kind, and their time, ns.
    pub fn of(&self, wanted: impl Fn(&Chain) -> bool) -> (Vec<&Chain>, f64) {
        let chains: Vec<&Chain> = self.chains.iter().filter(|c| wanted(c)).collect();
        let ns = sum(chains.iter().copied());
        (chains, ns)
    }
}

/// Length of one wait of the target, on average over these chains, ns.
pub fn wait_ns(chains: &[&Chain]) -> f64 {
    let number: f64 = chains.iter().map(|c| ratio(c.ns, c.links[0].length_ns)).sum();
    ratio(sum(chains.iter().copied()), number)
}

fn sleepers(case: &Case, walk: &Walk, clients: &Clients) -> Vec<Sleeper> {
    let mut threads: BTreeMap<u32, Sleeper> = BTreeMap::new();
    for row in case.recording.rows::<Wakeup>().iter().filter(|row| walk.target.contains(&row.pid)) {
        let sleeps = walk.slept(case, row);
        let client = clients.ended(case, row);
        if !sleeps && !client {
            continue;
        }
        let thread = threads.entry(row.tid).or_default();
        (thread.pid, thread.tid) = (row.pid, row.tid);
        thread.comm.clone_from(&row.comm);
        thread.clients += u64::from(client);
        if sleeps {
            thread.slept_ns += row.blocked_ns.max(row.wait_ns) as f64;
            thread.sleeps += 1;
            thread.call = case.syscall(row.syscall);
        }
    }
    let mut sleepers: Vec<Sleeper> = threads.into_values().filter(|t| t.sleeps > 0).collect();
    sleepers.sort_by(|a, b| b.slept_ns.total_cmp(&a.slept_ns));
    sleepers
}
