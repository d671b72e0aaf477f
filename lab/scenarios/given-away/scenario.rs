// SPDX-License-Identifier: Apache-2.0
//! A Rust service whose requests wait for threads of a pool, which all have its name and sleep: they are at work for the request that
//! waits. In the twin requests wait for each other: each sleeps with what the others need in its hand.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19501;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "given-away",
    about: "a Rust service whose threads wait for others that sleep for them",
    expected: Expected { syscall: Some("nanosleep"), ..Expected::cause(&["sleep-in-path"]) },
    twin: Some(Expected { syscall: Some("futex"), ..Expected::cause(&["user-lock-contention"]) }),
    builds: &[Build::Rust("lab/scenarios/given-away/tiles.rs", "tiles")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let mode = if side == Side::Fault { "pool" } else { "brush" };
    let fetch = cell.draw.number("fetch_ms", 15, 12..=40);
    let args = [&PORT.to_string(), mode, &fetch.to_string()];
    let pid = cell.start(Program::built("tiles").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 8, 4..=20);
    full_load(cell, PORT, "/", connections)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
