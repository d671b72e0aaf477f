// SPDX-License-Identifier: Apache-2.0
//! From wakeups to rows. Stacks are looked up as they come, so that rows need not be kept until the end.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use anyhow::Result;
use recording::tables::Wakeup;
use stacks::Stacks;

use crate::probes::ledger::Ledger;
use crate::probes::wakeups;

/// Remembers which stack of the kernel's map is which of the recording.
pub struct Rows {
    start_ns: u64,
    ids: HashMap<u64, u32>,
}

impl Rows {
    pub fn new(start_ns: u64) -> Self {
        Self { start_ns, ids: HashMap::new() }
    }

    /// Rows of a batch of wakeups.
    pub fn take(&mut self, raw: &[wakeups::Wakeup], ledger: &Ledger<'_>, stacks: &mut Stacks) -> Result<Vec<Wakeup>> {
        raw.iter().map(|row| self.row(row, ledger, stacks)).collect()
    }

    fn row(&mut self, raw: &wakeups::Wakeup, ledger: &Ledger<'_>, stacks: &mut Stacks) -> Result<Wakeup> {
        let (sleeper, waker) = (&raw.sleeper, &raw.waker);
        Ok(Wakeup {
            t_ns: raw.at_ns.saturating_sub(self.start_ns),
            pid: sleeper.tgid,
            tid: sleeper.tid,
            comm: sleeper.comm.clone(),
            wait_ns: raw.wait_ns,
            since_ns: raw.since_ns.saturating_sub(self.start_ns),
            blocked_ns: raw.blocked_ns,
            cpu_ns: raw.cpu_ns,
            run_queue_ns: raw.run_queue_ns,
            waits: raw.waits,
            asked: raw.asked,
            syscall: sleeper.syscall,
            args: if sleeper.syscall >= 0 { raw.args.to_vec() } else { Vec::new() },
            fd_kind: raw.fd_kind.into(),
            state: raw.state.into(),
            io_wait: raw.io_wait,
            stack: self.stack(sleeper.stack, ledger, stacks)?,
            family: sleeper.ports.family.into(),
            local_port: sleeper.ports.local.into(),
            remote_port: sleeper.ports.remote.into(),
            peer: address(sleeper.ports.peer),
            context: raw.context.into(),
            waker_pid: waker.tgid,
            waker_tid: waker.tid,
            waker_comm: waker.comm.clone(),
            waker_syscall: waker.syscall,
            waker_stack: self.stack(waker.stack, ledger, stacks)?,
            waker_family: waker.ports.family.into(),
            waker_local_port: waker.ports.local.into(),
            waker_remote_port: waker.ports.remote.into(),
        })
    }

    fn stack(&mut self, key: u64, ledger: &Ledger<'_>, stacks: &mut Stacks) -> Result<u32> {
        if key == 0 {
            return Ok(0);
        }
        if let Some(id) = self.ids.get(&key) {
            return Ok(*id);
        }
        let Some(addresses) = ledger.stack(key)? else { return Ok(0) };
        let frames = stacks.kernel(&addresses);
        let id = stacks.intern(&frames, &[], true);
        self.ids.insert(key, id);
        Ok(id)
    }
}

/// An IPv4 address in network order as the kernel keeps it; empty = none.
fn address(raw: u32) -> String {
    if raw == 0 { String::new() } else { Ipv4Addr::from(raw.to_ne_bytes()).to_string() }
}
