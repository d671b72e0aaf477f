// SPDX-License-Identifier: Apache-2.0
//! Finished handshakes that wait for accept(2), how many may, and how many the socket dropped, by listening socket of the
//! target.

use std::collections::BTreeMap;

use recording::counters::listeners;

use super::shared_listeners::SharedListeners;
use super::{Readings, Sampler, Scope};
use crate::sockets::Source;

/// The target's TCP listeners; on the host, all of our own network namespace.
pub struct Listeners {
    source: Source,
    shared: SharedListeners,
}

/// Of all sockets with one address.
#[derive(Default)]
struct Queue {
    waiting: u64,
    backlog: Option<u64>,
    drops: Option<u64>,
}

pub fn sampler(scope: &Scope) -> Listeners {
    Listeners { source: Source::of(&scope.proc, &scope.network()), shared: SharedListeners::default() }
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
        self.shared.tell(scope, &listeners, out);
        // Several sockets may share an address (SO_REUSEPORT): their queues are added.
        let mut queues: BTreeMap<String, Queue> = BTreeMap::new();
        for listener in listeners {
            let queue = queues.entry(listener.to_string()).or_default();
            queue.waiting += listener.receive_queue;
            queue.backlog = listener.backlog.map(|backlog| queue.backlog.unwrap_or(0) + backlog);
            queue.drops = listener.memory.map(|memory| queue.drops.unwrap_or(0) + memory.drops);
        }
        queues.retain(|name, _| scope.pids.is_empty() || scope.listen.contains(name));
        for (name, queue) in queues {
            let values = [
                (listeners::ACCEPT_QUEUE, Some(queue.waiting)),
                (listeners::BACKLOG, queue.backlog),
                (listeners::DROPS, queue.drops),
            ];
            for (key, value) in values {
                if let Some(value) = value {
                    out.put(key, &name, value as f64);
                }
            }
        }
        Ok(())
    }
}
