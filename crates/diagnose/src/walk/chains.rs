// SPDX-License-Identifier: Apache-2.0
//! Chains out of a walk: from a wait of the target, link by link, to an end.

use std::collections::BTreeMap;

use super::{AGAIN, DNS, End, HAND_OFF, INTERPRETER, Kind, LOCK, Node, PARKED, Walk, Who};
use crate::statistics::{ratio, share};

/// Kind of file of a wait for a connection.
const SOCKET: &str = "socket";

/// One link: somebody who waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Who, and in which call.
    pub who: Who,
    /// It is a thread of the target.
    pub is_own: bool,
    /// Time of the whole chain that passes here, ns.
    pub ns: f64,
    /// Length of one of these waits, on average, ns.
    pub length_ns: f64,
    /// Id in table `stack` of the kernel stack with most of it; 0 = none.
    pub stack: u32,
    /// Id of the user stack with most of it, or else with which it usually waits in this call; 0 = unknown, as of all
    /// that is not the target's.
    pub code: u32,
}

/// What kind of waiting a chain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nature {
    /// Nobody was kept waiting: there was nothing to do until a client asked, or an event loop's own timer ran out.
    Idle,
    /// Another thread of the target ended it: what that one waited for is counted there.
    HandOver,
    /// Somebody was waited for.
    Waiting,
    /// It cannot be told which.
    Untold,
}

/// A way from a wait of the target to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// From the target on; never empty.
    pub links: Vec<Link>,
    /// Where it ends.
    pub end: End,
    /// Id in table `stack` of the user stack with which the last one then woke the one before; 0 = unknown, as of all
    /// that is the target's.
    pub answer: u32,
    /// Time that it explains, ns.
    pub ns: f64,
    /// Waits that were picked and end there through its last link: their part of those that pass through it.
    pub waits: u64,
}

impl Chain {
    /// Whether the one who waits only lets time pass.
    pub fn is_own_sleep(&self) -> bool {
        self.links.len() == 1 && self.links[0].who.sleeps()
    }

    /// Whether whoever was asked over a connection had nothing to do until it was asked something else, and answered then: so does
    /// a long poll, or who takes from a queue.
    pub fn is_of_idle_peer(&self) -> bool {
        self.end.kind == Kind::Client && self.links.len() == 1 && !self.links[0].who.peer.is_empty()
    }

    /// Where it comes back to another thread of the target, for which whoever was asked waits, as before a row that this one keeps locked;
    /// 0 = it does not.
    pub fn back_at(&self) -> usize {
        let last = self.links.iter().rposition(|link| link.is_own).unwrap_or(0);
        let passes_others = self.links[..last].iter().any(|link| !link.is_own);
        if passes_others && !self.links[0].who.peer.is_empty() { last } else { 0 }
    }

    /// Whether it comes back to a thread of the target.
    pub fn comes_back(&self) -> bool {
        self.back_at() > 0
    }

    /// Whether that one asks nobody else.
    pub fn ends_at_home(&self) -> bool {
        self.comes_back() && self.back_at() + 1 == self.links.len() && self.links[self.back_at()].who.peer.is_empty()
    }

    /// Whether it comes back to a sleep.
    pub fn comes_back_to_sleep(&self) -> bool {
        self.ends_at_home() && self.links.last().is_some_and(|link| link.who.sleeps())
    }

    /// Whether whoever was asked over a connection stands before a lock, and who holds that waits for what its own client sends next.
    pub fn is_kept_for_another(&self) -> bool {
        let is_lock = |link: &Link| [LOCK, HAND_OFF].contains(&link.who.fd_kind.as_str());
        let [first, between @ .., last] = &self.links[..] else { return false };
        let is_kept = match self.end.kind {
            Kind::Client => is_lock(last),
            // On another host, that is as far as is seen.
            Kind::Packet => {
                last.who.fd_kind == SOCKET && last.who.peer.is_empty() && between.last().is_some_and(is_lock)
            }
            _ => false,
        };
        !first.who.peer.is_empty() && is_kept
    }

    /// What kind of waiting it is.
    pub fn nature(&self) -> Nature {
        let sleeps = self.links.last().is_some_and(|l| l.who.sleeps());
        let first = self.links.len() == 1;
        let who = &self.links[0].who;
        // Before what is held in turn too: workers that take turns to listen wait for a client, all of them.
        if matches!(self.end.kind, Kind::Client | Kind::Signal | Kind::Held) {
            return Nature::Idle;
        }
        match (who.fd_kind.as_str(), self.end.kind) {
            (PARKED, _) => return Nature::Idle,
            // It waits again and again, too shortly to be looked at: so do those that take turns to listen.
            (LOCK, Kind::Short) => return Nature::Untold,
            (LOCK | DNS, _) => return Nature::Waiting,
            // Threads that compute in turn are one load for the CPU, as with the lock of an interpreter.
            (INTERPRETER, _) => return Nature::HandOver,
            (HAND_OFF, _) => return if first { Nature::HandOver } else { Nature::Waiting },
            _ => {}
        }
        match self.end.kind {
            Kind::HandOver => Nature::HandOver,
            // A connection that the target made: whoever ends the wait, an answer was waited for.
            _ if !who.peer.is_empty() => Nature::Waiting,
            Kind::Timer if first && !sleeps => Nature::Idle,
            Kind::Packet if first => Nature::Untold,
            Kind::Unseen => Nature::Untold,
            _ => Nature::Waiting,
        }
    }
}

/// All chains of a walk, those that explain most time first.
pub(super) fn of(walk: &Walk) -> Vec<Chain> {
    of_nodes(walk, &walk.waits)
}

/// The same of other waits of the target.
pub(super) fn of_nodes(walk: &Walk, nodes: &BTreeMap<Who, Node>) -> Vec<Chain> {
    let mut chains = Vec::new();
    collect(walk, &walk.programs.added_up(nodes), &mut Vec::new(), &mut chains);
    chains.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    chains
}

fn collect(walk: &Walk, nodes: &BTreeMap<Who, Node>, links: &mut Vec<Link>, chains: &mut Vec<Chain>) {
    for (who, node) in nodes {
        let (begin, depth) = (chains.len(), links.len());
        let code = most(&node.user_stacks).unwrap_or_else(|| walk.code(who));
        let length_ns = ratio(node.ns, node.number);
        links.push(Link {
            who: who.clone(),
            is_own: is_own(walk, links.first(), who),
            ns: node.ns,
            length_ns,
            stack: most(&node.kernel_stacks).unwrap_or(0),
            code,
        });
        for (end, ns) in &node.ends {
            let (links, end) = (links.clone(), end.clone());
            let waits = (node.waits as f64 * share(*ns, node.ns)).round() as u64;
            chains.push(Chain { answer: walk.answer(who, &end), links, end, ns: *ns, waits });
        }
        collect(walk, &node.children, links, chains);
        links.pop();
        count_waiting(&mut chains[begin..], depth);
    }
}

/// Whether it is a thread of the target. Of programs that this starts again and again, the one that has requests is the target as well;
/// others are asked.
fn is_own(walk: &Walk, first: Option<&Link>, who: &Who) -> bool {
    let has_requests = || first.is_none_or(|first| first.who.pid == AGAIN && first.who.comm == who.comm);
    walk.target.contains(&who.pid) || who.pid == AGAIN && has_requests()
}

/// The stack with most time.
fn most(stacks: &BTreeMap<u32, f64>) -> Option<u32> {
    stacks.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(id, _)| *id)
}

/// Gives a link that chains share the time of those that are waiting: idleness and what was handed over in the same call
/// is no time of theirs.
fn count_waiting(chains: &mut [Chain], link: usize) {
    let is_waiting = |chain: &Chain| chain.nature() == Nature::Waiting;
    let ns = chains.iter().filter(|chain| is_waiting(chain)).map(|chain| chain.ns).sum();
    chains.iter_mut().filter(|chain| is_waiting(chain)).for_each(|chain| chain.links[link].ns = ns);
}
