// SPDX-License-Identifier: Apache-2.0
//! `--pid`: one process and its descendants.

use anyhow::{Result, bail};

use super::Chosen;
use super::tree::Tree;
use crate::proc::{Proc, is_dead, is_kernel_thread};

pub fn find(proc: &Proc, pid: u32) -> Result<Chosen> {
    let Some(stat) = proc.stat(pid) else {
        bail!("there is no process {pid}; `ps -e` lists those that run (pids of a container differ from the host's)");
    };
    if is_kernel_thread(&stat) {
        bail!(
            "process {pid} ({}) is a kernel thread: it works for whoever gave the kernel work; \
             name the service itself, or run wakewalk without a target to watch the whole host",
            stat.comm
        );
    }
    if is_dead(&stat) {
        bail!(
            "process {pid} ({}) has ended and only waits for its parent {} to collect it; name a process that runs",
            stat.comm,
            stat.ppid
        );
    }
    let mut notes = Vec::new();
    // /proc/TID exists for every thread, though a listing of /proc does not show it.
    let process = proc.status(pid, "Tgid").and_then(|id| id.parse().ok()).unwrap_or(pid);
    if process != pid {
        notes.push(format!("{pid} is a thread of process {process}; the whole process is observed"));
    }
    let inner = proc.inner_pid(process);
    if inner != process {
        notes.push(format!("process {process} runs in a container, where its pid is {inner}"));
    }
    let pids = Tree::read(proc).with_descendants(&[process]);
    Ok(Chosen { main: vec![process], pids, notes, ..Chosen::default() })
}
