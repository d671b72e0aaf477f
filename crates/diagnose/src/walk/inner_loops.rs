// SPDX-License-Identifier: Apache-2.0
//! Event loops inside an event loop: for a program that is started, or a question that is asked, a handler runs a loop of its own until
//! that is done (`execSync` of Node.js, a nested loop of asyncio), and meanwhile its thread looks at nobody else.
//!
//! The call is the same as the one in which the thread waits for its clients, but the set of files is another one.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::Wakeup;

use super::clients::Clients;
use crate::case::Case;
use crate::syscall;

/// The sets of files in which threads that take what clients ask were seen to wait.
#[derive(Clone, Debug, Default)]
pub struct InnerLoops {
    /// By thread, those in which something of a client came.
    outer: BTreeMap<u32, BTreeSet<u64>>,
}

impl InnerLoops {
    /// Learns where threads of the target take what clients ask.
    pub fn new(case: &Case, clients: &Clients, target: &BTreeSet<u32>) -> Self {
        let mut loops = Self::default();
        for row in case.recording.rows::<Wakeup>().iter().filter(|row| target.contains(&row.pid)) {
            if let Some(set) = set(case, (row.syscall, &row.args)).filter(|_| clients.ended(case, row)) {
                loops.outer.entry(row.tid).or_default().insert(set);
            }
        }
        loops
    }

    /// Whether a thread that takes what clients ask waits in another set, by its call and the arguments of that.
    pub fn has(&self, case: &Case, tid: u32, call: (i32, &[u64])) -> bool {
        let outer = self.outer.get(&tid);
        set(case, call).is_some_and(|set| outer.is_some_and(|outer| !outer.contains(&set)))
    }
}

/// The descriptor of the set of files in which somebody waits.
fn set(case: &Case, (syscall, args): (i32, &[u64])) -> Option<u64> {
    args.first().copied().filter(|_| syscall::is_loop(&case.syscall(syscall)))
}
