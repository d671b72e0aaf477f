// SPDX-License-Identifier: Apache-2.0
//! Facts: numbers computed from a case. One file a fact, one line here.

pub mod calls;
pub mod children;
pub mod connections;
pub mod contended;
pub mod counters;
pub mod cpus;
pub mod errors;
pub mod file_locks;
pub mod file_systems;
pub mod host;
pub mod kernel_locks;
pub mod limits;
pub mod memory;
pub mod neighbours;
pub mod polling;
pub mod profile;
pub mod quality;
pub mod requests;
pub mod resources;
pub mod serving;
pub mod stacks;
pub mod stopped;
pub mod unexplained;
pub mod waiting;
pub mod workers;
