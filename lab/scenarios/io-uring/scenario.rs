// SPDX-License-Identifier: Apache-2.0
//! A C server on io_uring at full use: nearly all of its calls return 0, which is the number of entries that they handed
//! in, and says nothing about what was received.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, NEUTRAL, Scenario, Side};

const PORT: u16 = 19189;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "io-uring",
    about: "a C server on io_uring at full use, whose calls return 0",
    expected: NEUTRAL,
    twin: None,
    builds: &[Build::C("lab/scenarios/io-uring/ring.c", "ring")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    let pid = cell.start(Program::built("ring").args([PORT.to_string()]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 64, 8..=128);
    full_load(cell, PORT, "/", connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
