// SPDX-License-Identifier: Apache-2.0
//! A Java service with a thread for each client that sleeps 2 ms in the `synchronized` block that all requests need.
//! The twin sleeps as long before it. Both waits are on a futex of the thread's own: for the lock without a time limit,
//! for the sleep with one.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19163;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "lock-convoy-java",
    about: "a threaded Java service that sleeps 2 ms in a synchronized block",
    expected: Expected { syscall: Some("futex"), ..Expected::cause(&["user-lock-contention"]) },
    twin: Some(Expected::cause(&["sleep-in-path"])),
    builds: &[Build::Java("lab/scenarios/lock-convoy-java/Ledger.java", "ledger.jar")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("ledger.jar")?;
    let mode = if side == Side::Fault { "locked" } else { "unlocked" };
    let service = Program::installed("java").args(["-cp", "ledger.jar", "Ledger", &PORT.to_string(), mode]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 8, 4..=16);
    full_load(cell, PORT, "/", connections)?;
    // Until the just-in-time compiler has calmed down.
    cell.stop.sleep(Duration::from_secs(4))?;
    Ok(Aim::Pid(pid))
}
