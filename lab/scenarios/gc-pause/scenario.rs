// SPDX-License-Identifier: Apache-2.0
//! A Go service with a large map of pointers and a collector that may hardly let the heap grow. The twin lets it grow fivefold.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19141;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "gc-pause",
    about: "a Go service with 400,000 pointers and GOGC=5",
    expected: Expected::cause(&["runtime-pause"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Go("lab", "./scenarios/gc-pause", "prices")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let percent = if side == Side::Fault { cell.draw.number("gogc", 5, 2..=6) } else { 400 };
    let service =
        Program::built("prices").args(["-listen", &format!("127.0.0.1:{PORT}"), "-gogc", &percent.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 8, 4..=16);
    full_load(cell, PORT, "/prices", connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
