// SPDX-License-Identifier: Apache-2.0
//! The lab: real software with a known fault, its healthy twin, and the score of the diagnoses.
//!
//! A scenario builds a service, starts it with load in a cell (own network namespace, own cgroup,
//! own folder), lets the wakewalk binary diagnose it from outside, and compares the verdict with
//! the truth. Nothing of a scenario outlives its cell, however the runner ends.

pub mod args;
pub mod bench;
pub mod builds;
pub mod cell;
mod certificate;
pub mod chains;
pub mod diff_bench;
pub mod disturbance;
pub mod documents;
pub mod draw;
pub mod enter;
pub mod fixtures;
pub mod kernels;
pub mod languages;
pub mod loader;
pub mod loads;
mod mariadb;
pub mod paths;
pub mod pick;
mod postgres;
pub mod probe;
pub mod procfs;
pub mod runner;
pub mod scenario;
pub mod scenarios;
pub mod score;
pub mod scripted;
pub mod stop;
pub mod story;
pub mod zoo;

/// Whether a run has to be whole, so that a skip for want of the kernel is a failure.
pub fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()))
}
