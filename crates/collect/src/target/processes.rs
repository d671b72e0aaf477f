// SPDX-License-Identifier: Apache-2.0
//! Rows of table `process`: who the target's processes are.

use std::path::Path;

use recording::tables::Process;

use super::listening;
use crate::cgroup::Membership;
use crate::proc::Proc;

/// One row for each of these processes that is still there, in their order.
pub fn processes(root: &Path, pids: &[u32]) -> Vec<Process> {
    let proc = Proc::new(root);
    let mut listen = listening(&proc, pids);
    let row = |pid: &u32| {
        let stat = proc.stat(*pid)?;
        Some(Process {
            pid: *pid,
            ppid: u32::try_from(stat.ppid).unwrap_or(0),
            inner_pid: proc.inner_pid(*pid),
            instances: 1,
            comm: stat.comm,
            exe: proc.exe(*pid),
            cmdline: proc.cmdline(*pid),
            cgroup: Membership::of(&proc, *pid).name(),
            listen: listen.remove(pid).unwrap_or_default(),
            ..Process::default()
        })
    };
    pids.iter().filter_map(row).collect()
}
