// SPDX-License-Identifier: Apache-2.0
//! A server that never waits in epoll_wait either, by choice: at full use each poll brings work, and
//! a wait would only add its cost. Timeout 0 alone is not a fault.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, NEUTRAL, Scenario, Side};

const PORT: u16 = 19091;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "poll-with-work",
    about: "a C server that polls with timeout 0 at full use, and finds work each time",
    expected: NEUTRAL,
    twin: None,
    builds: &[Build::C("lab/scenarios/poll-with-work/pollwork.c", "pollwork")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    cell.start(Program::built("pollwork").args([PORT.to_string()]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 64, 32..=128);
    full_load(cell, PORT, "/", connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Comm("pollwork"))
}
