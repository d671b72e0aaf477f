// SPDX-License-Identifier: Apache-2.0
//! A threaded C search service whose index is mapped into memory, in a cgroup with room for a third of it. The twin has
//! room for all.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19171;
const INDEX_MB: u64 = 192;

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
    let room = if side == Side::Fault { INDEX_MB / 3 } else { INDEX_MB * 3 };
    let args = [&PORT.to_string(), "index", "index.data", &INDEX_MB.to_string()];
    let index = Program::built("threaded").named("index").args(args);
    let pid = cell.start(index.on_cpus(SERVICE_CPU).with_memory(room << 20))?;
    cell.wait_for_port(PORT)?;
    steady_load(cell, PORT, "/", 300, 4)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
