// SPDX-License-Identifier: Apache-2.0
//! Whether what requests wait for is a disk, and the target's own use of it.

use super::are_mostly;
use crate::case::Case;
use crate::facts::memory::Memory;
use crate::facts::stacks::Stacks;
use crate::judgement::short_memory;
use crate::ledger::blocked::symbols;
use crate::ledger::file_system;
use crate::walk::Kind;
use crate::walk::chains::Chain;

/// Most of the time of these chains. Whoever is asked, and waits for a disk itself, is a slow dependency; a file system that somebody else
/// serves is no disk, though a thread of the kernel ends waits for it; and pages come from a disk because memory is short.
pub(super) fn is_most(case: &Case, chains: &[&Chain]) -> bool {
    let Ok(stacks) = case.fact::<Stacks>() else { return false };
    let is_short = case.fact::<Memory>().is_ok_and(|memory| short_memory::shortage(&memory).is_some());
    are_mostly(chains, |chain| {
        let of_target = chain.links.iter().all(|link| link.who.peer.is_empty() && link.is_own);
        let last = &chain.links[chain.links.len() - 1];
        let stack = symbols(&stacks, last.stack);
        let is_file = chain.end.kind == Kind::Disk || file_system::is_on_disk(&stack);
        let is_paging = is_short && last.who.call == "none";
        of_target && is_file && !is_paging && file_system::elsewhere(&stack).is_none()
    })
}
