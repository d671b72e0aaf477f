// SPDX-License-Identifier: Apache-2.0
//! Bound UDP sockets of the target: what lies unread in their buffers, and the datagrams that they dropped.
//!
//! `/proc/net/snmp` counts drops for the whole network namespace; these say whose they were.

use std::collections::BTreeMap;

use recording::counters::udp_sockets;

use super::{Readings, Sampler, Scope};
use crate::sockets::{Memory, Source};

/// The target's UDP sockets; on the host, all of our own network namespace.
pub struct UdpSockets {
    source: Source,
}

pub fn sampler(scope: &Scope) -> UdpSockets {
    UdpSockets { source: Source::of(&scope.proc, &scope.network()) }
}

impl Sampler for UdpSockets {
    fn name(&self) -> &'static str {
        udp_sockets::SOURCE
    }

    fn needs(&self) -> &'static str {
        "root and a kernel with udp_diag; without them it is unknown whose socket dropped datagrams"
    }

    fn sample(&mut self, scope: &Scope, out: &mut Readings) -> Result<(), String> {
        // Most services have none, and then nothing is unknown.
        if !scope.pids.is_empty() && !scope.listen.iter().any(|name| name.starts_with("udp ")) {
            return Ok(());
        }
        let sockets = self.source.udp().map_err(|error| format!("cannot ask for UDP sockets ({error})"))?;
        let mut by_address: BTreeMap<String, Memory> = BTreeMap::new();
        for socket in sockets {
            let name = socket.to_string();
            let Some(memory) = socket.memory else { continue };
            if scope.pids.is_empty() || scope.listen.contains(&name) {
                let sum = by_address.entry(name).or_default();
                sum.received += memory.received;
                sum.receive_buffer += memory.receive_buffer;
                sum.drops += memory.drops;
            }
        }
        for (name, memory) in by_address {
            out.put(udp_sockets::QUEUE_BYTES, &name, memory.received as f64);
            out.put(udp_sockets::BUFFER_BYTES, &name, memory.receive_buffer as f64);
            out.put(udp_sockets::DROPS, &name, memory.drops as f64);
        }
        Ok(())
    }
}
