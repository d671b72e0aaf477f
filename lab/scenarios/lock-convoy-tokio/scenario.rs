// SPDX-License-Identifier: Apache-2.0
//! A service on tokio whose handlers sleep 2 ms while they hold the mutex that all requests need. The twin's sleep as long before they
//! take it. Each worker of the runtime stands below the frames that keep idle ones, too.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19597;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "lock-convoy-tokio",
    about: "a Rust service on tokio that sleeps 2 ms while it holds a mutex",
    expected: Expected { syscall: Some("futex"), ..Expected::cause(&["user-lock-contention"]) },
    twin: Some(Expected { syscall: Some("nanosleep"), ..Expected::cause(&["sleep-in-path"]) }),
    builds: &[Build::Cargo("lab/scenarios/lock-convoy-tokio", "tokio-ledger")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let mode = if side == Side::Fault { "locked" } else { "unlocked" };
    let workers = cell.draw.number("workers", 8, 4..=12);
    let args = [PORT.to_string(), workers.to_string(), mode.to_string()];
    let pid = cell.start(Program::built("tokio-ledger").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    full_load(cell, PORT, "/", workers * 2)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
