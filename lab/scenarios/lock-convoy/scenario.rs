// SPDX-License-Identifier: Apache-2.0
//! A threaded C service that waits for an auditor while it holds the mutex that all requests need. The twin waits as long
//! before it takes the mutex: slow as well, but not because of the lock.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, THREADED, full_load};
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19131;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "lock-convoy",
    about: "a threaded C service that waits 2 ms for something else while it holds a mutex",
    expected: Expected { syscall: Some("futex"), ..Expected::cause(&["user-lock-contention"]) },
    twin: Some(Expected { syscall: Some("nanosleep"), ..Expected::cause(&["sleep-in-path"]) }),
    builds: &[THREADED],
    folders: &["lab/threaded"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let mode = if side == Side::Fault { "locked" } else { "unlocked" };
    let wait_us = cell.draw.number("wait_us", 2000, 1000..=10_000).to_string();
    let pid = cell.start(Program::built("threaded").args([&PORT.to_string(), mode, &wait_us]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 8, 4..=16);
    full_load(cell, PORT, "/", connections)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
