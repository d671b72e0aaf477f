// SPDX-License-Identifier: Apache-2.0
//! Probes and samplers: what the kernel says about a target, put into tables.

pub mod account;
pub mod capture;
pub mod cgroup;
pub mod clock;
pub mod collector;
pub mod collectors;
pub mod courtesy;
pub mod doctor;
#[cfg(test)]
mod fake_root;
mod file_names;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod hooks;
pub mod host;
pub mod host_processes;
pub mod host_watch;
pub mod inventory;
pub mod labels;
pub mod namespace;
mod netlink;
pub mod oom;
mod open_files;
pub mod plan;
mod priority;
pub mod privileges;
pub mod probes;
pub mod proc;
pub mod samplers;
mod seldom;
pub mod sockets;
pub mod target;
pub mod tested_kernels;
