// SPDX-License-Identifier: Apache-2.0
//! Facts: numbers computed from a case. One file a fact, one line here.

pub mod calls;
pub mod children;
pub mod counters;
pub mod cpus;
pub mod host;
pub mod limits;
pub mod memory;
pub mod polling;
pub mod profile;
pub mod quality;
pub mod resources;
pub mod rights;
pub mod serving;
pub mod stacks;
pub mod waiting;
pub mod workers;
