// SPDX-License-Identifier: Apache-2.0
//! A Go service that answers nobody for a while, every three seconds: all handlers read a table that is read anew then, under a lock
//! of the language's own. Its percentiles are good, because only one request of each connection waits. The twin takes some
//! milliseconds for it.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19271;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "stands-still",
    about: "a Go service that answers nobody for 0.6 s, every three seconds",
    expected: Expected::cause(&["not-determined"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Go("lab", "./scenarios/stands-still", "tariffs")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let takes = match side {
        Side::Fault => cell.draw.number("milliseconds", 600, 350..=1000),
        Side::Twin => 5,
    };
    let connections = cell.draw.number("connections", 6, 4..=24);
    let service = Program::built("tariffs").args([PORT.to_string(), takes.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    full_load(cell, PORT, "/", connections)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
