// SPDX-License-Identifier: Apache-2.0
//! The thread ledger, as the scheduler's own counters give it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where one thread's time went in one slice of the capture. The lines add up to `wall_ns`.
/// Exited short-lived threads of one command name share a row with `tid` 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Thread {
    /// End of the slice, ns after the capture's start.
    pub t_ns: u64,
    /// Process id; 0 = short-lived ones together.
    pub pid: u32,
    /// Thread id; 0 = short-lived ones together, or, in a look at the host, all threads of the process.
    pub tid: u32,
    /// Command name of the thread.
    pub comm: String,
    /// How many threads this row stands for.
    pub instances: u64,
    /// Time the thread existed in this slice, ns.
    pub wall_ns: u64,
    /// On-CPU time by se.sum_exec_runtime, ns.
    pub cpu_ns: u64,
    /// Runnable after a wakeup, not yet running, ns (sched_info.run_delay).
    pub run_queue_ns: u64,
    /// Runnable after a preemption, not yet running, ns (sched_info.run_delay).
    pub preempted_ns: u64,
    /// Held by a cgroup CPU quota, ns.
    pub throttled_ns: u64,
    /// Switched out until woken, ns; table `wait` says for what.
    pub blocked_ns: u64,
    /// On a CPU but not charged to the thread: interrupts, steal, rounding, ns.
    pub interrupted_ns: u64,
    /// Switches because the thread blocked.
    pub voluntary_switches: u64,
    /// Switches because another thread was to run.
    pub involuntary_switches: u64,
}
