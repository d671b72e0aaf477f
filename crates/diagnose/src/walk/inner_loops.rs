// SPDX-License-Identifier: Apache-2.0
//! Event loops inside an event loop: for a program that is started, or a question that is asked, a handler runs a loop of its own until
//! that is done (`execSync` of Node.js, a nested loop of asyncio), and meanwhile its thread looks at nobody else. Backends of a database
//! stand before a row in the same way.
//!
//! The call is the same as the one in which the thread waits for its clients, but the set of files is another one.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::{Request, Wakeup};

use super::clients::Clients;
use super::who::kind_of_thread;
use crate::case::Case;
use crate::syscall;

/// In which sets of files threads wait for their clients, and in which for something else.
#[derive(Clone, Debug, Default)]
pub struct InnerLoops {
    /// By thread that takes what clients ask, of the target or of whom that asks, the sets in which something of theirs came.
    outer: BTreeMap<u32, BTreeSet<u64>>,
    /// The same by the thread's name, and the sets in which such threads wait besides.
    alike: BTreeMap<String, Sets>,
    /// By thread, the ports of the clients that ask it; 0 = unknown.
    clients: BTreeMap<u32, BTreeSet<u32>>,
}

#[derive(Clone, Debug, Default)]
struct Sets {
    outer: BTreeSet<u64>,
    inner: BTreeSet<u64>,
}

/// A call in which a thread waits: its number and its arguments.
type Call<'a> = (i32, &'a [u64]);

impl InnerLoops {
    /// Learns where threads of the target take what clients ask, and those of whom it asks.
    pub fn new(case: &Case, clients: &Clients, target: &BTreeSet<u32>) -> Self {
        let mut loops = Self::default();
        let rows = case.recording.rows::<Wakeup>().iter();
        let rows: Vec<(&Wakeup, u64)> = rows.filter_map(|row| Some((row, set(case, call(row))?))).collect();
        let is_asked = |row: &Wakeup| match target.contains(&row.pid) {
            true => clients.ended(case, row),
            false => clients.is_of_peers_client(row),
        };
        for (row, set) in rows.iter().filter(|(row, _)| is_asked(row)) {
            loops.outer.entry(row.tid).or_default().insert(*set);
            loops.alike.entry(kind_of_thread(&row.comm)).or_default().outer.insert(*set);
            let port = if row.remote_port == 0 { row.waker_local_port } else { row.remote_port };
            loops.clients.entry(row.tid).or_default().insert(port);
        }
        for row in case.recording.rows::<Request>().iter().filter(|row| row.is_of_client()) {
            let port = row.peer.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
            loops.clients.entry(row.began_tid).or_default().insert(port.unwrap_or(0));
        }
        for (row, set) in &rows {
            if loops.outer.get(&row.tid).is_some_and(|outer| !outer.contains(set)) {
                loops.alike.entry(kind_of_thread(&row.comm)).or_default().inner.insert(*set);
            }
        }
        loops
    }

    /// Whether a thread that takes what clients ask waited in another set.
    pub fn has(&self, case: &Case, row: &Wakeup) -> bool {
        self.is_inner(case, (row.tid, &row.comm), call(row))
    }

    /// The same, by a thread and its name, and the call. One that stands before a lock all the time is not seen to wait for its client,
    /// and has its sets where its like has them.
    pub fn is_inner(&self, case: &Case, (tid, comm): (u32, &str), call: Call<'_>) -> bool {
        if !self.clients.contains_key(&tid) {
            return false;
        }
        set(case, call).is_some_and(|set| match (self.outer.get(&tid), self.alike.get(&kind_of_thread(comm))) {
            (Some(outer), _) => !outer.contains(&set),
            (None, Some(alike)) => alike.inner.contains(&set) && !alike.outer.contains(&set),
            (None, None) => false,
        })
    }

    /// Whether all that a thread takes is of one client, as in a backend of a database.
    pub fn serves_one(&self, tid: u32) -> bool {
        self.clients.get(&tid).is_some_and(|clients| clients.len() == 1 && !clients.contains(&0))
    }
}

fn call(row: &Wakeup) -> Call<'_> {
    (row.syscall, &row.args)
}

/// The descriptor of the set of files in which somebody waits.
fn set(case: &Case, (syscall, args): Call<'_>) -> Option<u64> {
    args.first().copied().filter(|_| syscall::is_loop(&case.syscall(syscall)))
}
