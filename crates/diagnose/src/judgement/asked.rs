// SPDX-License-Identifier: Apache-2.0
//! Whom the target waits for because it asked: who that is, what speaks for it, and whether it was a wait at all.

pub(crate) mod words;

use std::collections::BTreeMap;

use crate::case::Case;
use crate::facts::connections::Connections;
use crate::facts::unexplained::Unexplained;
use crate::facts::waiting::{Waiting, sum};
use crate::judgement::paths::is_at_nobody_asked;
use crate::judgement::standing::matters;
use crate::statistics::share;
use crate::syscall::{Family, family};
use crate::verdict::Subject;
use crate::walk::chains::{Chain, Link};
use crate::walk::clients::UNIX_PEER;
use crate::walk::{DNS, Kind, Who, lasting};
use crate::wording::{percent, seconds, sockets_to};

/// Of the window, over all threads: less is a call now and then.
pub(crate) const MIN_TIME: f64 = 0.02;

/// One wait, on average, where there is not one after the other for each request: a database or a service in the same data centre that answers within a few ms does what is expected
/// of it, and what a user feels begins there.
pub(crate) const MIN_WAIT_NS: f64 = 5e6;

/// Of the waiting, with an end that nobody saw.
const MAX_UNSEEN: f64 = 0.5;

/// Of the waiting, ended by a timer of TCP: then it is the way, and not whoever was asked.
const MAX_SENT_AGAIN: f64 = 0.5;

/// Of the answers that were owed, so many to questions that had not been sent: then whoever was asked is innocent.
const MAX_HELD_BACK: f64 = 0.25;

/// Whom the target waits for most: chains by the first process after its own, or by the host that it asked.
pub(crate) fn worst(waiting: &Waiting) -> Option<(String, Vec<&Chain>, f64)> {
    let mut by: BTreeMap<String, (Vec<&Chain>, f64)> = BTreeMap::new();
    for chain in &waiting.chains {
        let Some(who) = asked(waiting, chain) else { continue };
        let entry = by.entry(who).or_default();
        entry.0.push(chain);
        entry.1 += chain.ns;
    }
    let (_, (chains, ns)) = by.into_iter().max_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
    Some((together(&chains), chains, ns))
}

/// What those are called whom chains to one address wait for: a process, or a program that has one for each connection.
fn together(chains: &[&Chain]) -> String {
    let first = who(chains[0]);
    if chains.iter().all(|chain| who(chain) == first) {
        return first;
    }
    let program = first.rsplit_once('/').map_or(first.as_str(), |(program, _)| program);
    format!("{program} ({})", chains[0].links[0].who.peer)
}

/// Who was asked, if it is another process or host: an address, or who is asked otherwise. Where the target writes and the other one is slow to read, nothing was
/// asked; and one whose own waits the target never ended only brings what it has, like a client.
fn asked(waiting: &Waiting, chain: &Chain) -> Option<String> {
    if is_at_nobody_asked(chain) {
        return None;
    }
    let last = &chain.links[chain.back_at()..];
    let own = &last[0].who;
    if family(&own.call) == Family::Send || own.fd_kind == DNS {
        return None;
    }
    let (pid, name) = match last.get(1) {
        Some(link) => (link.who.pid, link.who.name()),
        None => (chain.end.pid, chain.end.name()),
    };
    if name.is_empty() || pid == own.pid {
        return Some(own.peer.clone()).filter(|peer| !peer.is_empty());
    }
    // Some have a process for each connection: together they are whom was asked.
    if !own.peer.is_empty() && own.peer != UNIX_PEER {
        return Some(own.peer.clone());
    }
    waiting.asked.get(&pid).copied().unwrap_or(true).then_some(name)
}

/// What speaks for whoever was asked, if anything does.
pub(crate) fn doubt(case: &Case, who: &str, chains: &[&Chain], ns: f64) -> Option<String> {
    let peer = &chains[0].links[0].who.peer;
    let waited = format!("It waited for {who} for {}", seconds(ns / 1e9));
    if let Some(held_back) = held_back(case, peer) {
        return Some(format!(
            "{waited}, but in {} of the connections in which an answer was owed, part of the question itself stood unsent \
             (small writes without TCP_NODELAY, or a full window): look at `{}`",
            percent(held_back),
            sockets_to("-tino", peer)
        ));
    }
    let sent_again = sum(chains.iter().copied().filter(|chain| chain.end.kind == Kind::TcpTimer));
    if share(sent_again, ns) >= MAX_SENT_AGAIN {
        return Some(format!(
            "{waited}, but {} of that ended when a timer of TCP sent again what had been lost or held on the way: look at \
             `nstat -az TcpRetransSegs` and `{}`",
            percent(share(sent_again, ns)),
            sockets_to("-tino", peer)
        ));
    }
    is_unseen(chains, ns)
        .then(|| format!("{waited}, and what that one did meanwhile was not seen: {}", look_there(chains[0])))
}

/// Whether most of what some chains lead to was not recorded.
fn is_unseen(chains: &[&Chain], ns: f64) -> bool {
    share(sum(chains.iter().copied().filter(|chain| chain.end.kind == Kind::Unseen)), ns) >= MAX_UNSEEN
}

/// Whom it waited for most, if what that one did was not seen, and where to look for it.
pub(crate) fn unseen(case: &Case) -> Option<(String, String)> {
    let waiting = case.fact::<Waiting>().ok()?;
    let (who, chains, ns) = worst(&waiting)?;
    is_unseen(&chains, ns).then(|| (who, look_there(chains[0])))
}

/// Whom a chain waits for first that is not of its own process: process, or address. Whoever only waits for another thread of the target
/// is passed over.
pub(crate) fn who(chain: &Chain) -> String {
    first_other(&chain.links[chain.back_at()..], chain)
}

/// The same of one that comes back: who only waits for another thread of the target.
pub(crate) fn before(chain: &Chain) -> String {
    first_other(&chain.links, chain)
}

fn first_other(links: &[Link], chain: &Chain) -> String {
    let own = &links[0].who;
    let other = links.iter().skip(1).map(|link| &link.who).find(|who| who.pid != own.pid);
    let name = other.map_or_else(|| chain.end.name(), Who::name);
    if name.is_empty() { own.peer.clone() } else { name }
}

/// Whether something speaks for whoever is asked in these chains, of which the first has most of the time.
pub(crate) fn is_doubted(case: &Case, chains: &[&Chain]) -> bool {
    let Some(first) = chains.first() else { return true };
    doubt(case, &who(first), chains, sum(chains.iter().copied())).is_some()
}

/// In how many of the connections to a peer in which an answer was owed, part of the question stood unsent, if in many.
fn held_back(case: &Case, peer: &str) -> Option<f64> {
    let held_back = case.fact::<Connections>().ok()?.held_back(peer);
    (!peer.is_empty() && held_back >= MAX_HELD_BACK).then_some(held_back)
}

/// Whom it waited for most, if that one did not have the whole question: name and address.
pub(crate) fn unsent(case: &Case) -> Option<(String, String)> {
    let waiting = case.fact::<Waiting>().ok()?;
    let (who, chains, _) = worst(&waiting)?;
    let peer = chains.first()?.links[0].who.peer.clone();
    held_back(case, &peer).map(|_| (who, peer))
}

fn look_there(chain: &Chain) -> String {
    match (lasting(chain.end.pid), chain.end.name()) {
        (Some(pid), _) => format!("`sudo wakewalk diagnose --pid {pid}`"),
        (None, name) if name.is_empty() => "look at the other end".to_string(),
        (None, name) => format!("look at what {name} does"),
    }
}

/// Whether too much of the waiting cannot be told from idleness. Where all clients got their answers, it was some.
pub(crate) fn is_untold(case: &Case, waiting: &Waiting) -> bool {
    let untold = waiting.untold_ns;
    let answered = || {
        let seen = case.fact::<Connections>().is_ok_and(|c| c.tells()) && !waiting.other_clients;
        seen && case.fact::<Unexplained>().is_ok_and(|u| !matters(&u))
    };
    untold >= (waiting.demand_ns + waiting.waiting_ns) && untold >= case.length_ns() * MIN_TIME && !answered()
}

/// Where the chain ends, who computes or the last one who waits, and through which connection it was asked.
pub(crate) fn subject(chain: &Chain) -> Subject {
    let socket = Some(chain.links[0].who.peer.clone()).filter(|peer| !peer.is_empty());
    Subject { socket, ..at_end(chain) }
}

fn at_end(chain: &Chain) -> Subject {
    let (end, last) = (&chain.end, chain.links.last().filter(|_| chain.links.len() > 1));
    match (end.kind, last) {
        (Kind::OnCpu | Kind::RunQueue | Kind::Unseen, _) => {
            Subject { pid: lasting(end.pid), comm: Some(end.comm.clone()), ..Subject::default() }
        }
        (_, Some(link)) => Subject {
            pid: lasting(link.who.pid),
            comm: Some(link.who.comm.clone()),
            syscall: Some(link.who.call.clone()),
            ..Subject::default()
        },
        _ => Subject::default(),
    }
}
