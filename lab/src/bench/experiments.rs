// SPDX-License-Identifier: Apache-2.0
//! The list of experiments. One is a file of this folder and two lines here.

mod agreement;
mod busy_poll;
mod forks;
mod generator;
mod knee;
mod nginx;
mod ping_pong;
pub(super) mod redis;
mod response_time;
mod sched_pipe;
mod threads;
mod versions;

use super::Experiment;

/// All of them, in the order in which they run.
pub static ALL: &[&Experiment] = &[
    &nginx::EXPERIMENT,
    &nginx::FRESH,
    &nginx::BESIDE_IDLE,
    &redis::EXPERIMENT,
    &response_time::EXPERIMENT,
    &agreement::EXPERIMENT,
    &sched_pipe::EXPERIMENT,
    &ping_pong::EXPERIMENT,
    &busy_poll::EXPERIMENT,
    &threads::EXPERIMENT,
    &forks::EXPERIMENT,
    &generator::EXPERIMENT,
    &knee::EXPERIMENT,
    &versions::EXPERIMENT,
];

/// The CPU that services are kept on.
pub(super) const SERVICE_CPU: &[usize] = &[0];
/// The CPU that load comes from.
const LOAD_CPU: &[usize] = &[1];
/// Length of a diagnosis, and of the stretch without one that it is compared with.
const SECONDS: f64 = 10.0;
/// The same where the capture's length matters less than the number of pairs.
const SHORT_SECONDS: f64 = 5.0;
/// For how long another tool is attached.
const PEER_SECONDS: f64 = 2.0;
