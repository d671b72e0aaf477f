// SPDX-License-Identifier: Apache-2.0
//! Finished handshakes that wait for accept(2), and how many may, by listening socket of the target.

use std::collections::BTreeMap;

use recording::counters::listeners;

use super::{Readings, Sampler, Scope};
use crate::sockets::Source;

/// The target's TCP listeners; on the host, all of our own network namespace.
pub struct Listeners {
    source: Source,
}

pub fn sampler(scope: &Scope) -> Listeners {
    Listeners { source: Source::of(&scope.proc, &scope.network()) }
}

impl Sampler for Listeners {
    fn name(&self) -> &'static str {
        listeners::SOURCE
    }

    fn needs(&self) -> &'static str {
        "root and a kernel with tcp_diag; without them the target's accept queues are unknown"
    }

    fn sample(&mut self, scope: &Scope, out: &mut Readings) -> Result<(), String> {
        if matches!(self.source, Source::Text { .. }) && scope.is_this_machine() {
            return Err("sock_diag cannot be used in the target's network namespace".to_string());
        }
        let listeners = self.source.tcp().map_err(|error| format!("cannot ask for listeners ({error})"))?;
        // Several sockets may share an address (SO_REUSEPORT): their queues are added.
        let mut queues: BTreeMap<String, (u64, Option<u64>)> = BTreeMap::new();
        for listener in listeners {
            let queue = queues.entry(listener.to_string()).or_default();
            queue.0 += listener.receive_queue;
            queue.1 = listener.backlog.map(|backlog| queue.1.unwrap_or(0) + backlog);
        }
        queues.retain(|name, _| scope.pids.is_empty() || scope.listen.contains(name));
        for (name, (waiting, backlog)) in queues {
            out.put(listeners::ACCEPT_QUEUE, &name, waiting as f64);
            if let Some(backlog) = backlog {
                out.put(listeners::BACKLOG, &name, backlog as f64);
            }
        }
        Ok(())
    }
}
