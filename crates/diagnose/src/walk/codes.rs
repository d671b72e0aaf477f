// SPDX-License-Identifier: Apache-2.0
//! Where in its program somebody waits.

use std::collections::BTreeMap;

use recording::tables::WaitStack;

use super::turns::{LOCK, is_lock};
use super::who::{Who, kind_of_thread};
use crate::case::Case;
use crate::facts::stacks::Stacks;

/// Parts of the names of functions that look up a host's name: of glibc, musl, and the resolver libraries.
const RESOLVERS: &[&str] =
    &["getaddrinfo", "gethostby", "_nss_dns_", "res_nsearch", "res_nquery", "res_nsend", "res_msend", "name_from_dns"];

/// User stacks by who waits, and whether before a lock.
#[derive(Clone, Debug, Default)]
pub struct Codes {
    seen: BTreeMap<Who, BTreeMap<u32, u64>>,
    resolving: Vec<u32>,
}

impl Codes {
    /// Counts the stacks of table `wait_stack`.
    pub fn new(case: &Case, stacks: &Stacks) -> Self {
        let mut codes = Self::default();
        for row in case.recording.rows::<WaitStack>().iter().filter(|row| row.stack != 0) {
            let lock = if is_lock(case, row.syscall, &row.args) { LOCK } else { "" };
            let (comm, call) = (kind_of_thread(&row.comm), case.syscall(row.syscall));
            let who = Who { pid: row.pid, comm, call, fd_kind: lock.to_string(), ..Who::default() };
            *codes.seen.entry(who).or_default().entry(row.stack).or_default() += 1;
        }
        let resolves = |id: &u32| stacks.user(*id).any(|code| RESOLVERS.iter().any(|name| code.symbol.contains(name)));
        codes.resolving = codes.seen.values().flat_map(BTreeMap::keys).copied().filter(resolves).collect();
        codes
    }

    /// The stack with which somebody usually waits; 0 = unknown.
    pub fn usual(&self, who: &Who) -> u32 {
        let lock = if who.fd_kind == LOCK { LOCK } else { "" };
        let key = Who { fd_kind: lock.into(), peer: String::new(), path: String::new(), ..who.clone() };
        let most = self.seen.get(&key).and_then(|seen| seen.iter().max_by_key(|(_, count)| **count));
        most.map_or(0, |(stack, _)| *stack)
    }

    /// Whether somebody usually waits there for a name to be looked up.
    pub fn asks_dns(&self, who: &Who) -> bool {
        !self.resolving.is_empty() && self.resolving.contains(&self.usual(who))
    }
}
