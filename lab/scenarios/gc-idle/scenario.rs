// SPDX-License-Identifier: Apache-2.0
//! The Go service of gc-pause on a host with room: the collector marks beside the program, on CPUs that nobody else wants.
//! It takes most of the CPU time, and keeps no request waiting.

use std::time::Duration;

use anyhow::Result;

use super::{WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, NEUTRAL, Scenario, Side};

const PORT: u16 = 19181;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "gc-idle",
    about: "a Go service with 400,000 pointers and GOGC=5, at a tenth of its limit on idle CPUs",
    expected: NEUTRAL,
    twin: None,
    builds: &[Build::Go("lab", "./scenarios/gc-pause", "prices"), WEBLOAD],
    folders: &["lab/webload", "lab/scenarios/gc-pause"],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    let pid = cell.start(Program::built("prices").args(["-listen", &format!("127.0.0.1:{PORT}"), "-gogc", "5"]))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 300, 200..=400);
    steady_load(cell, PORT, "/prices", rate, 8)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
