// SPDX-License-Identifier: Apache-2.0
//! How good the evidence is, and what it cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much the evidence covers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Share of the threads' wall time that ledger lines account for.
    pub thread_time: f64,
    /// Share of on-CPU time that has a sampled stack reaching a named function.
    pub cpu_time: f64,
    /// Standard error of the split of on-CPU time into user and kernel, which comes from samples, 0 to 1.
    #[serde(default)]
    pub user_share_error: f64,
    /// Share of blocked time that has a kernel stack.
    pub blocked_time: f64,
    /// Events that a probe or ring could not keep.
    pub events_lost: u64,
}

/// What the capture cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// CPU seconds of our programs in the kernel and of our process.
    pub cpu_seconds: f64,
    /// The same as a share of all CPUs over the window.
    pub share_of_machine: f64,
    /// Peak resident memory of our process.
    pub peak_rss_bytes: u64,
    /// Kernel memory of our maps and rings.
    pub kernel_map_bytes: u64,
    /// Share of the window in which every system call was counted.
    pub call_window_share: f64,
    /// What a system call of any other process took longer meanwhile, ns.
    #[serde(default)]
    pub call_window_price_ns: f64,
}
