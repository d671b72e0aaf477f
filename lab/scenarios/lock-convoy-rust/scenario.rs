// SPDX-License-Identifier: Apache-2.0
//! A Rust service with a thread for each client that sleeps 2 ms while it holds the mutex that all requests need. The
//! twin sleeps as long before it takes the mutex.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19164;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "lock-convoy-rust",
    about: "a threaded Rust service that sleeps 2 ms while it holds a mutex",
    expected: Expected { syscall: Some("futex"), ..Expected::cause(&["user-lock-contention"]) },
    twin: Some(Expected { syscall: Some("nanosleep"), ..Expected::cause(&["sleep-in-path"]) }),
    builds: &[Build::Rust("lab/scenarios/lock-convoy-rust/ledger.rs", "ledger")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let mode = if side == Side::Fault { "locked" } else { "unlocked" };
    let pid = cell.start(Program::built("ledger").args([&PORT.to_string(), mode]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 8, 4..=16);
    full_load(cell, PORT, "/", connections)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
