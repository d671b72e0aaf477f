// SPDX-License-Identifier: Apache-2.0
//! From wakeups to rows.

use std::collections::HashMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use recording::tables::Wakeup;
use stacks::Stacks;

use super::kernel_stacks::KernelStacks;
use crate::probes::ledger::Ledger;
use crate::probes::wakeups;

/// Makes the rows.
pub struct Rows {
    root: PathBuf,
    start_ns: u64,
    /// Names of files by process and descriptor.
    paths: HashMap<(u32, u64), String>,
}

/// Files whose names are looked up.
const MOST_PATHS: usize = 1024;

impl Rows {
    pub fn new(root: &Path, start_ns: u64) -> Self {
        Self { root: root.to_path_buf(), start_ns, paths: HashMap::new() }
    }

    /// Rows of a batch of wakeups.
    pub fn take(
        &mut self,
        raw: &[wakeups::Wakeup],
        ledger: &Ledger<'_>,
        (known, stacks): (&mut KernelStacks, &mut Stacks),
    ) -> Result<Vec<Wakeup>> {
        raw.iter().map(|row| self.row(row, |key| known.id(key, ledger, stacks))).collect()
    }

    fn row(&mut self, raw: &wakeups::Wakeup, mut stack: impl FnMut(u64) -> Result<u32>) -> Result<Wakeup> {
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
            file_system: raw.file_system,
            state: raw.state.into(),
            io_wait: raw.io_wait,
            stack: stack(sleeper.stack)?,
            family: sleeper.ports.family.into(),
            local_port: sleeper.ports.local.into(),
            remote_port: sleeper.ports.remote.into(),
            peer: address(&sleeper.ports),
            path: self.path(raw),
            context: raw.context.into(),
            waker_pid: waker.tgid,
            waker_tid: waker.tid,
            waker_comm: waker.comm.clone(),
            waker_syscall: waker.syscall,
            waker_stack: stack(waker.stack)?,
            waker_family: waker.ports.family.into(),
            waker_local_port: waker.ports.local.into(),
            waker_remote_port: waker.ports.remote.into(),
        })
    }

    /// Name of the file that the sleeper's call is about. It is looked up while the process still has it, once.
    fn path(&mut self, raw: &wakeups::Wakeup) -> String {
        if !matches!(raw.fd_kind, "file" | "block" | "pipe" | "tty") {
            return String::new();
        }
        let key = (raw.sleeper.tgid, raw.args[0]);
        if self.paths.len() >= MOST_PATHS && !self.paths.contains_key(&key) {
            return String::new();
        }
        let link = self.root.join(format!("proc/{}/fd/{}", key.0, key.1));
        let name = || {
            let path = fs::read_link(link).unwrap_or_default();
            if path.is_absolute() { path.to_string_lossy().into_owned() } else { String::new() } // not `pipe:[812]`
        };
        self.paths.entry(key).or_insert_with(name).clone()
    }
}

/// The peer's address as people write it; empty = none.
fn address(ports: &wakeups::Ports) -> String {
    let [a, b, c, d, ..] = ports.peer;
    let address = match i32::from(ports.family) {
        libc::AF_INET => IpAddr::from([a, b, c, d]),
        libc::AF_INET6 => IpAddr::from(ports.peer).to_canonical(),
        _ => return String::new(),
    };
    if address.is_unspecified() { String::new() } else { address.to_string() }
}
