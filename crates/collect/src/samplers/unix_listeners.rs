// SPDX-License-Identifier: Apache-2.0
//! Connections that wait for accept(2) at the target's Unix sockets: a pool of workers behind a web server has no other listener.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use recording::counters::listeners;

use super::{Readings, Sampler, Scope};
use crate::sockets::{UnixDiag, UnixListener};

/// Of the time, spent on finding out whose a new socket is: that takes a walk over descriptors.
const SHARE: u32 = 100;

/// Processes that are asked for theirs: workers share what their parent opened.
const PROCESSES: usize = 64;

/// The target's Unix listeners.
pub struct UnixListeners {
    diag: Result<UnixDiag, String>,
    /// Whether a socket is the target's, by inode.
    known: HashMap<u64, bool>,
    not_before: Instant,
}

pub fn sampler(scope: &Scope) -> UnixListeners {
    let diag = UnixDiag::of(&scope.proc, &scope.network()).map_err(|error| error.to_string());
    UnixListeners { diag, known: HashMap::new(), not_before: Instant::now() }
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
        let diag = self.diag.as_mut().map_err(|why| format!("cannot ask for Unix sockets ({why})"))?;
        let all = diag.listeners().map_err(|error| format!("cannot ask for Unix sockets ({error})"))?;
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
        self.known.retain(|inode, _| now.contains(inode));
        let began = Instant::now();
        if began < self.not_before || now.iter().all(|inode| self.known.contains_key(inode)) {
            return;
        }
        let own: HashSet<u64> =
            scope.pids.iter().take(PROCESSES).flat_map(|pid| scope.proc.socket_inodes(*pid)).collect();
        self.known.extend(now.into_iter().map(|inode| (inode, own.contains(&inode))));
        self.not_before = Instant::now() + began.elapsed() * SHARE;
    }
}
