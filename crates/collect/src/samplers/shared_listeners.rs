// SPDX-License-Identifier: Apache-2.0
//! Connections that wait for accept(2) at one of several sockets with the same address, and whose that socket is: the kernel deals new
//! connections out to all of them (SO_REUSEPORT), also to one from which nobody takes them.

use std::collections::{BTreeMap, HashMap, HashSet};

use recording::counters::shared_listeners;

use super::pid::PROCESSES;
use super::{Readings, Scope};
use crate::seldom::Seldom;
use crate::sockets::Listener;

/// Sockets told at most: a hundred workers have one each, and it is a few that stand out.
const SOCKETS: usize = 64;

/// The target's listeners that share an address.
#[derive(Default)]
pub(super) struct SharedListeners {
    /// Sockets in whose queue somebody stood, by inode, with the processes that hold it; none = not looked at yet.
    stood: BTreeMap<u64, Option<Holders>>,
    /// Whose they are takes a walk over descriptors.
    looks: Seldom,
    /// Processes of the target then.
    pids: Vec<u32>,
}

/// Processes of the target that have a socket open.
#[derive(Clone, Copy, Debug, Default)]
struct Holders {
    count: usize,
    /// Whose it is, of those: parents and children have open what they share.
    whose: Option<u32>,
}

impl SharedListeners {
    /// Tells what is known of them; of sockets that are read from text files not even the backlog is.
    pub(super) fn tell(&mut self, scope: &Scope, all: &[Listener], out: &mut Readings) {
        let mut by_address: BTreeMap<String, Vec<&Listener>> = BTreeMap::new();
        for listener in all.iter().filter(|listener| listener.backlog.is_some()) {
            by_address.entry(listener.to_string()).or_default().push(listener);
        }
        by_address.retain(|name, sockets| sockets.len() > 1 && scope.listen.contains(name));
        self.meet(scope, &by_address);
        for (address, sockets) in &by_address {
            for socket in sockets {
                let Some(holders) = self.stood.get(&socket.inode) else { continue };
                let name = format!("{address} inode {}", socket.inode);
                let holders = holders.as_ref();
                let values = [
                    (shared_listeners::ACCEPT_QUEUE, Some(socket.receive_queue as f64)),
                    (shared_listeners::BACKLOG, socket.backlog.map(|backlog| backlog as f64)),
                    (shared_listeners::SHARE_IT, Some(sockets.len() as f64)),
                    (shared_listeners::HOLDERS, holders.map(|holders| holders.count as f64)),
                    (shared_listeners::HOLDER, holders.and_then(|holders| holders.whose).map(f64::from)),
                ];
                for (key, value) in values {
                    if let Some(value) = value {
                        out.put(key, &name, value);
                    }
                }
            }
        }
    }

    /// Takes in those in whose queue somebody stands, and finds out whose they are.
    fn meet(&mut self, scope: &Scope, by_address: &BTreeMap<String, Vec<&Listener>>) {
        let there: HashSet<u64> = by_address.values().flatten().map(|socket| socket.inode).collect();
        self.stood.retain(|inode, _| there.contains(inode));
        for socket in by_address.values().flatten().filter(|socket| socket.receive_queue > 0) {
            if self.stood.len() < SOCKETS {
                self.stood.entry(socket.inode).or_default();
            }
        }
        // One that was nobody's may be that of a process that was not known yet.
        if self.pids != scope.pids {
            self.pids.clone_from(&scope.pids);
            let was_nobodys = |holders: &Option<Holders>| holders.is_some_and(|holders| holders.count == 0);
            self.stood.values_mut().filter(|holders| was_nobodys(holders)).for_each(|holders| *holders = None);
        }
        let is_known = self.stood.values().all(Option::is_some);
        // Of more processes than are looked into, one that was not may have it.
        let all_are_seen = scope.pids.len() <= PROCESSES;
        let Some(began) = self.looks.begin().filter(|_| !is_known && all_are_seen) else { return };
        let own: HashMap<u32, HashSet<u64>> =
            scope.pids.iter().map(|pid| (*pid, scope.proc.socket_inodes(*pid))).collect();
        for sockets in by_address.values() {
            let inodes: HashSet<u64> = sockets.iter().map(|socket| socket.inode).collect();
            for inode in &inodes {
                self.stood.entry(*inode).and_modify(|holders| *holders = Some(holders_of(*inode, &inodes, &own)));
            }
        }
        self.looks.end(began);
    }
}

/// Who has a socket open, of those with its address. A parent has those of all its children open, and a child only its own, or all as its
/// parent does: then it is nobody's.
fn holders_of(inode: u64, address: &HashSet<u64>, own: &HashMap<u32, HashSet<u64>>) -> Holders {
    let holding = own.iter().filter(|(_, held)| held.contains(&inode));
    let mut holders: Vec<(usize, u32)> =
        holding.map(|(pid, held)| (held.intersection(address).count(), *pid)).collect();
    holders.sort_unstable();
    let whose = match holders[..] {
        [(_, pid)] => Some(pid),
        [(fewest, pid), (next, _), ..] if fewest < next => Some(pid),
        _ => None,
    };
    Holders { count: holders.len(), whose }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_a_socket_is() {
        let whose = |open: &[(u32, &[u64])]| {
            let own = open.iter().map(|(pid, held)| (*pid, held.iter().copied().collect())).collect();
            let holders = holders_of(2, &[1, 2].into(), &own);
            (holders.count, holders.whose)
        };
        assert_eq!(whose(&[(10, &[1]), (11, &[2])]), (1, Some(11)), "each worker has its own");
        assert_eq!(whose(&[(10, &[1, 2]), (11, &[2, 7])]), (2, Some(11)), "a child that kept one of its parent's");
        assert_eq!(whose(&[(9, &[1, 2]), (10, &[1, 2]), (11, &[1, 2])]), (3, None), "all have all open");
        assert_eq!(whose(&[(10, &[1])]), (0, None), "somebody else's");
    }
}
