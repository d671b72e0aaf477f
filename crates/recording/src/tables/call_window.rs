// SPDX-License-Identifier: Apache-2.0
//! When system calls were counted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One short window in which every system call of the target was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallWindow {
    /// Id, from 1.
    pub id: u32,
    /// `results` (exit hook only) or `latency` (entry and exit hooks).
    pub kind: String,
    /// Start, ns after the capture's start.
    pub t_ns: u64,
    /// Length, ns.
    pub length_ns: u64,
    /// Calls of the target seen.
    pub calls: u64,
    /// Calls that found no room in the kernel's map.
    pub lost: u64,
    /// What a system call of a process outside the target took longer inside the window, ns, as
    /// wakewalk measured on calls of its own; 0 = not measured.
    pub price_ns: u64,
}
