// SPDX-License-Identifier: Apache-2.0
//! Connections that wait for accept(2) at the target's Unix sockets: a pool of workers behind a web server has no other listener.

use std::collections::{BTreeMap, HashMap, HashSet};

use recording::counters::listeners;

use super::pid::PROCESSES;
use super::{Readings, Sampler, Scope};
use crate::seldom::Seldom;
use crate::sockets::{Source, UnixListener};

/// The target's Unix listeners.
pub struct UnixListeners {
    source: Source,
    /// Whether a socket is the target's, by inode.
    known: HashMap<u64, bool>,
    /// Whose a new one is takes a walk over descriptors.
    looks: Seldom,
    /// Processes of the target then.
    pids: Vec<u32>,
}

pub fn sampler(scope: &Scope) -> UnixListeners {
    let source = Source::of(&scope.proc, &scope.network());
    UnixListeners { source, known: HashMap::new(), looks: Seldom::default(), pids: Vec::new() }
}

impl Sampler for UnixListeners {
    fn name(&self) -> &'static str {
        "proc/net/unix"
    }

    fn needs(&self) -> &'static str {
        "root and a kernel with unix_diag; without them the accept queues of the target's Unix sockets are unknown"
    }

    fn sample(&mut self, scope: &Scope, out: &mut Readings) -> Result<(), String> {
        // A host has hundreds that nobody cares for.
        if scope.pids.is_empty() {
            return Ok(());
        }
        let all = self.source.unix().map_err(|error| format!("cannot ask for Unix sockets ({error})"))?;
        self.meet(scope, &all);
        // Several may have had one path, each after the other.
        let mut queues: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for listener in all.iter().filter(|listener| self.known.get(&listener.inode) == Some(&true)) {
            let queue = queues.entry(&listener.name).or_default();
            *queue = (queue.0 + listener.queue, queue.1 + listener.backlog);
        }
        for (name, (queue, backlog)) in queues {
            out.put(listeners::ACCEPT_QUEUE, name, queue as f64);
            out.put(listeners::BACKLOG, name, backlog as f64);
        }
        Ok(())
    }
}

impl UnixListeners {
    /// Finds out whose those are that were not there before.
    fn meet(&mut self, scope: &Scope, all: &[UnixListener]) {
        let now: HashSet<u64> = all.iter().map(|listener| listener.inode).collect();
        // One that was nobody's may be that of a process that was not known yet.
        let others = self.pids != scope.pids;
        self.pids.clone_from(&scope.pids);
        self.known.retain(|inode, is_own| now.contains(inode) && (*is_own || !others));
        let is_known = now.iter().all(|inode| self.known.contains_key(inode));
        let Some(began) = self.looks.begin().filter(|_| !is_known) else { return };
        // Workers share what their parent opened.
        let own: HashSet<u64> =
            scope.pids.iter().take(PROCESSES).flat_map(|pid| scope.proc.socket_inodes(*pid)).collect();
        self.known.extend(now.into_iter().map(|inode| (inode, own.contains(&inode))));
        self.looks.end(began);
    }
}
