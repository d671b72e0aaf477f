// SPDX-License-Identifier: Apache-2.0
//! Causes that requests were seen to wait for, where the time of threads alone tells too little: idle workers beside busy ones,
//! a few slow requests among many quick ones, a thread of which no wait for a client was seen.

mod own_disk;

use std::collections::BTreeSet;

use crate::case::Case;
use crate::facts::own_ends::OTHERS;
use crate::facts::requests::Requests;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::sum;
use crate::judgement::backoff::Failing;
use crate::judgement::behind::Behind;
use crate::judgement::clients_wait::waited_longer;
use crate::judgement::felt::Felt;
use crate::judgement::holders::{holder_does, who_holds};
use crate::judgement::often::Often;
use crate::judgement::paths::{
    asks_a_peer, awaits_a_program, collector, is_at_nobody_asked, stands_before_peers, stands_still, waits_for_a_disk,
    waits_for_a_sleep,
};
use crate::judgement::secure::Shaking;
use crate::judgement::{asked, streams};
use crate::ledger::blocked::symbols;
use crate::ledger::kernel_lock;
use crate::phrases::chain::links;
use crate::remarks::hidden_queues;
use crate::rules::{confidence, explain};
use crate::statement::Statement;
use crate::statistics::ratio;
use crate::verdict::{Finding, Link, Subject};
use crate::walk::chains::Chain;
use crate::walk::clients::UNIX_PEER;
use crate::walk::paths::{Part, What};
use crate::walk::{HAND_OFF, Kind, LOCK, Walk, Who, lasting, name};
use crate::wording::{percent, seconds};

/// A cause that paths tell by themselves.
struct Told {
    cause: &'static str,
    is_it: fn(&Part) -> bool,
    /// Requests … for most of their time.
    does: fn(Option<&Chain>) -> String,
    /// Whether something speaks against it, of the chains with that part of the time.
    doubted: fn(&Case, &Felt, &[&Chain]) -> bool,
    /// What to do first, where it is more than to look at the wait.
    advises: fn(&Case, &Chain) -> Option<String>,
    /// It is somebody else who is asked: what the end of the chain does says what to do, and the sockets are a second witness.
    asks: bool,
    /// Causes that say the same more precisely, where they were found.
    unless: &'static [&'static str],
}

const TOLD: &[Told] = &[
    Told {
        cause: "disk-wait",
        is_it: waits_for_a_disk,
        does: |_| "wait for a disk".into(),
        doubted: |case, _, chains| !own_disk::is_most(case, chains),
        advises: |_, _| None,
        asks: false,
        unless: &["memory-pressure"],
    },
    Told {
        cause: "user-lock-contention",
        is_it: stands_before_peers,
        does: |chain| match chain.and_then(|chain| Some((of_another_kind(chain)?, holder_does(chain)))) {
            Some((who, does)) => format!("stand before a lock while {who} {does}"),
            None => chain.and_then(holder_of_a_lock).map_or_else(
                || "wait for each other".into(),
                |does| format!("wait for each other before a lock (its holder {does})"),
            ),
        },
        doubted: |case, _, chains| {
            are_before_the_kernel(case, chains) || are_before_others(case, chains) || are_held_for_clients(chains)
        },
        advises: |_, chain| {
            let less = |who: &str| format!("have {who} hold the lock for less: take what it does meanwhile out of it");
            let of_its_own = || holder_of_a_lock(chain).map(|_| "whoever holds it".to_string());
            of_another_kind(chain).or_else(of_its_own).map(|who| less(&who))
        },
        asks: false,
        // A collector that stops all threads has them wait for each other too.
        unless: &["pool-exhausted", "runtime-pause", "disk-wait"],
    },
    Told {
        cause: "runtime-pause",
        is_it: stands_still,
        does: |_| "stand still for the garbage collector".into(),
        doubted: |_, _, _| false,
        advises: |_, chain| collector(chain).map(|collector| collector.less_often.into()),
        asks: false,
        unless: &[],
    },
    Told {
        cause: "sleep-in-path",
        is_it: waits_for_a_sleep,
        does: |_| "wait for a thread of the service that sleeps".into(),
        doubted: |case, _, chains| streams::awaited(case, chains).is_some(),
        advises: |case, chain| match chain.comes_back() {
            true => Some(format!(
                "do not sleep while {} waits for it, as in an open transaction: other requests wait for that",
                asked::before(chain)
            )),
            false => Failing::of(case).map(|failing| failing.advice()),
        },
        asks: false,
        unless: &[],
    },
    Told {
        cause: "slow-dependency",
        is_it: |part| asks_a_peer(part) || awaits_a_program(part),
        does: |chain| format!("wait for {}", chain.map_or_else(String::new, asked::who)),
        doubted: |case, felt, chains| {
            asked::is_doubted(case, chains)
                || are_mostly(chains, is_at_nobody_asked)
                || !asked_for_as_long(case, felt, chains)
                || streams::awaited(case, chains).is_some()
        },
        advises: |_, _| None,
        asks: true,
        unless: &["pool-exhausted", "nagle-delayed-ack", "send-buffer-limited", "packet-loss", "link-saturated"],
    },
];

/// Whom those before a lock wait for, if it is a thread of another kind that has it.
fn of_another_kind(chain: &Chain) -> Option<String> {
    let (pid, comm) = who_holds(chain);
    let is_another = comm != chain.links[0].who.comm && !comm.is_empty() && chain.end.kind != Kind::Unseen;
    is_another.then(|| name(comm, pid))
}

/// What the holder of a lock does, where that was seen.
fn holder_of_a_lock(chain: &Chain) -> Option<String> {
    let is_lock = [LOCK, HAND_OFF].contains(&chain.links[0].who.fd_kind.as_str());
    (is_lock && chain.end.kind != Kind::Unseen).then(|| holder_does(chain))
}

/// Whether they stand before a lock of the kernel, as that of the memory map or of a file: none of the program's own.
fn are_before_the_kernel(case: &Case, chains: &[&Chain]) -> bool {
    let Ok(stacks) = case.fact::<Stacks>() else { return false };
    are_mostly(chains, |chain| kernel_lock::of(&symbols(&stacks, chain.links[0].stack)).is_some())
}

/// Whether those who hold what they stand before have nothing to do but to wait for what their own clients say next.
fn are_held_for_clients(chains: &[&Chain]) -> bool {
    are_mostly(chains, |chain| chain.end.kind == Kind::Client)
}

/// Whether most of the time of these chains is in such ones.
fn are_mostly(chains: &[&Chain], is_one: impl Fn(&Chain) -> bool) -> bool {
    2.0 * sum(chains.iter().copied().filter(|chain| is_one(chain))) > sum(chains.iter().copied())
}

/// Whether they stand before threads that are none of the target's.
fn are_before_others(case: &Case, chains: &[&Chain]) -> bool {
    let Ok(walk) = case.fact::<Walk>() else { return false };
    are_mostly(chains, |chain| {
        let pid = chain.links.get(1).map_or(chain.end.pid, |link| link.who.pid);
        pid != 0 && !walk.target.contains(&pid)
    })
}

/// Of what the paths say, what the sockets have to say too.
const AS_LONG: f64 = 0.5;

/// Whether the sockets saw the target wait for those peers for about so long: paths are put together from times of different
/// connections. Where several questions share a connection, neither tells. A program that was started is asked over none.
fn asked_for_as_long(case: &Case, felt: &Felt, chains: &[&Chain]) -> bool {
    let Ok(requests) = case.fact::<Requests>() else { return false };
    // Of questions over Unix sockets, nothing else is counted.
    let is_counted = |peer: &str| !peer.is_empty() && peer != UNIX_PEER;
    let over_sockets = || chains.iter().filter(|chain| is_counted(&chain.links[0].who.peer));
    let peers: BTreeSet<&str> = over_sockets().map(|chain| chain.links[0].who.peer.as_str()).collect();
    // A loop that has much under way is woken by whoever answers next.
    let first = chains.first().map_or("", |chain| chain.links[0].who.peer.as_str());
    if waited_longer(&requests, first).is_some() {
        return false;
    }
    // Of very many peers, those that came last are counted together.
    let has = |name: &str| requests.endpoints.iter().any(|e| !e.accepted && e.name == name);
    let among_others = peers.iter().any(|peer| !has(peer));
    let is_one = |name: &str| peers.contains(name) || among_others && name == OTHERS;
    let asked = requests.endpoints.iter().filter(|e| !e.accepted && !e.is_mixed() && is_one(&e.name));
    let waited: f64 = asked.map(|e| e.awaited_ns()).sum();
    // Not all requests were followed: what these waited for stands for the others.
    let times =
        felt.number(case).map_or(1.0, |all| ratio(all * requests.scale(), felt.group().requests as f64).max(1.0));
    waited * requests.scale() >= over_sockets().map(|chain| chain.ns).sum::<f64>() * times * AS_LONG
}

/// What was found, but for causes that were found otherwise.
pub fn found(case: &Case, known: impl Fn(&str) -> bool) -> Vec<(Finding, Statement)> {
    let mut all: Vec<(Finding, Statement)> = Vec::new();
    for felt in [Felt::of(case), Felt::of_handshakes(case)].into_iter().flatten() {
        let more = found_by(case, &felt, |cause| known(cause) || all.iter().any(|(finding, _)| finding.cause == cause));
        all.extend(more);
    }
    all
}

fn found_by(case: &Case, felt: &Felt, known: impl Fn(&str) -> bool) -> Vec<(Finding, Statement)> {
    // One waits for another in an interpreter that runs one at a time.
    let in_turn = case.fact::<Walk>().is_ok_and(|walk| walk.mostly_interpreter());
    let told = TOLD.iter().filter(|told| !in_turn || told.cause != "user-lock-contention");
    let mut all: Vec<(Finding, Statement)> = Vec::new();
    for told in told {
        let known = |cause: &str| known(cause) || all.iter().any(|(finding, _)| finding.cause == cause);
        if known(told.cause) || told.unless.iter().any(|cause| known(cause)) {
            continue;
        }
        let Some(part) = felt.most(told.is_it) else { continue };
        let chains = chains(felt, told.is_it);
        if !(told.doubted)(case, felt, &chains) {
            all.push(finding(case, felt, told, (part, &chains)));
        }
    }
    all
}

fn finding(case: &Case, felt: &Felt, told: &Told, (part, chains): (f64, &[&Chain])) -> (Finding, Statement) {
    let longest = telling(chains);
    let (does, behind) = ((told.does)(longest), Behind::of(felt, told.is_it));
    let of_it = behind.as_ref().map_or_else(String::new, Behind::part);
    let [spent, took] = [felt.mean_ns() * part, felt.mean_ns()].map(|ns| seconds(ns / 1e9));
    let part_of = format!("for {} of their {} ({spent} of {took}{of_it})", percent(part), felt.time());
    let headline = format!("{} {does} {part_of}", felt.whose());
    let stacks = case.fact::<Stacks>().ok();
    let chain = longest.zip(stacks.as_deref()).map_or_else(Vec::new, |(chain, stacks)| links(chain, stacks));
    let first = chain.get(longest.map_or(0, Chain::back_at)).cloned().unwrap_or_default();
    let place = first.stack.first().map_or(String::new(), |function| format!(", in {function}"));
    let asked = longest.filter(|_| told.asks);
    let next = asked.map(|chain| asked::words::next(chain, stacks.as_deref()));
    let advised = || longest.and_then(|chain| (told.advises)(case, chain)).unwrap_or_else(|| advice(case, &first));
    let otherwise = || (advised(), explained(told.cause));
    let (advised, remedy) = next.unwrap_or_else(otherwise);
    let some = felt.number(case).map(|number| (number, felt.mean_ns()));
    let often = asked.zip(some).and_then(|(chain, some)| Often::of_some(case, &chain.links[0].who.peer, some));
    let (headline, advised) = more_precisely(case, asked, often, (headline, advised));
    let (more, remedy) = match &behind {
        Some(behind) => (behind.words(), format!("{remedy} {}", behind.advice())),
        None => (String::new(), remedy),
    };
    let finding = Finding {
        cause: told.cause.into(),
        // What is asked, the sockets saw too.
        confidence: confidence(case, if asked.is_some() { 2 } else { 1 }),
        summary: format!("{}; for {} of it they {does}{place}{more}", felt.words(), percent(part)),
        subject: asked.map_or_else(|| subject(longest), asked::subject),
        explains: felt.explains(case, part),
        evidence: felt.evidence("of it, spent on this", part),
        chain,
        remedy,
        check: format!("At the same load, {} take less by this part.", felt.whose()),
        is_root: false,
    };
    (finding, Statement::short(headline, advised))
}

/// That a peer is asked often, or mostly needs handshakes, and what to do about that.
fn more_precisely(
    case: &Case,
    asked: Option<&Chain>,
    often: Option<Often>,
    (headline, advised): (String, String),
) -> (String, String) {
    let Some(chain) = asked else { return (headline, advised) };
    if let Some(often) = often {
        return (format!("{headline}, {}", often.words()), often.advice(&asked::who(chain)));
    }
    match Shaking::of(case, &chain.links[0].who.peer) {
        Some(shaking) => (format!("{headline}, {}", shaking.words()), shaking.advice()),
        None => (headline, advised),
    }
}

fn explained(cause: &str) -> String {
    explain(cause).map_or(String::new(), |words| words.what_to_do)
}

fn advice(case: &Case, first: &Link) -> String {
    // Some of the words have an article.
    let wait = first.waits_on.trim_start_matches("a ");
    match first.stack.first() {
        Some(function) => format!("look at the {wait} of {function} in {}", first.who),
        None => format!("look at the {wait} in {}: {}", first.who, hidden_queues::look(case).look),
    }
}

/// The chains of a part of the time, those with most of it first.
fn chains<'f>(felt: &'f Felt, is_it: fn(&Part) -> bool) -> Vec<&'f Chain> {
    let chain = |part: &'f Part| if let What::Waits(chain) = &part.what { Some(&**chain) } else { None };
    felt.group().parts.iter().filter(|part| is_it(part)).filter_map(chain).collect()
}

/// The usual one of those that come back to the target, if these have a good part of the time: how others stand behind what one of its
/// threads does says more than that it does it.
fn telling<'c>(chains: &[&'c Chain]) -> Option<&'c Chain> {
    let back: Vec<&Chain> = chains.iter().copied().filter(|chain| chain.comes_back()).collect();
    let is_much = sum(back.iter().copied()) >= sum(chains.iter().copied()) * ENOUGH_SEEN;
    usual(if is_much && !back.is_empty() { &back } else { chains })
}

/// The shortest of the chains that are alike, of those that have most of the time: each connection may have a process of its own at the
/// other end, and who stands before a lock stands behind any number of others.
fn usual<'c>(chains: &[&'c Chain]) -> Option<&'c Chain> {
    let way = |chain: &Chain| {
        let [first, last] = [chain.links.first(), chain.links.last()].map(|link| link.map(|link| &link.who));
        let does = |who: Option<&Who>| who.map(|who| (who.comm.clone(), who.call.clone(), who.fd_kind.clone()));
        (does(first), does(last), chain.end.kind)
    };
    let mut by_way: Vec<(_, f64, &Chain)> = Vec::new();
    for chain in chains {
        let way = way(chain);
        match by_way.iter_mut().find(|(known, ..)| *known == way) {
            Some((_, ns, usual)) => {
                *ns += chain.ns;
                *usual = if chain.links.len() < usual.links.len() { chain } else { usual };
            }
            None => by_way.push((way, chain.ns, chain)),
        }
    }
    // A long queue ends where nobody looked any further; the ends that were seen tell of the others too.
    let seen = |(.., chain): &&(_, f64, &Chain)| chain.end.kind != Kind::Unseen;
    let longest = by_way.iter().filter(seen).max_by(|a, b| a.1.total_cmp(&b.1));
    let tells = longest.filter(|(_, ns, _)| *ns >= sum(chains.iter().copied()) * ENOUGH_SEEN);
    tells.or_else(|| by_way.iter().max_by(|a, b| a.1.total_cmp(&b.1))).map(|(.., chain)| *chain)
}

/// Of the time of chains, in those that come back, or are alike to an end that was seen.
const ENOUGH_SEEN: f64 = 0.25;

fn subject(chain: Option<&Chain>) -> Subject {
    let who = chain.map(|chain| &chain.links[chain.back_at()].who);
    Subject {
        pid: who.and_then(|who| lasting(who.pid)),
        comm: who.map(|who| who.comm.clone()),
        syscall: who.map(|who| who.call.clone()),
        ..Subject::default()
    }
}

#[cfg(test)]
mod tests;
