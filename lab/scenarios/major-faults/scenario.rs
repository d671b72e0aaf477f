// SPDX-License-Identifier: Apache-2.0
//! A threaded C search service whose index is mapped into memory, in a cgroup with room for a third of it. The twin has
//! room for all.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19171;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "major-faults",
    about: "a C service with an index in memory, and a memory limit of a third of it",
    expected: Expected::cause(&["memory-pressure"]),
    twin: Some(NEUTRAL),
    builds: &[THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let index_mb = cell.draw.number("index_mb", 192, 160..=256);
    let room = if side == Side::Fault { index_mb / 3 } else { index_mb * 3 };
    let args = [&PORT.to_string(), "index", "index.data", &index_mb.to_string()];
    let index = Program::built("threaded").named("index").args(args);
    let pid = cell.start(index.on_cpus(SERVICE_CPU).with_memory(room << 20))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 300, 250..=400);
    let connections = cell.draw.number("connections", 4, 2..=8);
    steady_load(cell, PORT, "/", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
