// SPDX-License-Identifier: Apache-2.0
//! A C service with one epoll loop that sleeps in its handler, under more load than it can answer: the next request is always
//! ready, so that the loop never waits for a client, and yet clients wait for it. The twin does not sleep.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, full_load, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19182;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "loop-sleeps",
    about: "a C event loop that sleeps 10 ms in its handler, with the next request always at hand",
    expected: Expected { function: Some("answer"), ..Expected::cause(&["sleep-in-path"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::C("lab/scenarios/loop-sleeps/gauge.c", "gauge"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let delay = if side == Side::Fault { cell.draw.number("delay_us", 10_000, 4_000..=40_000) } else { 0 };
    let service = Program::built("gauge").args([&PORT.to_string(), &delay.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    match side {
        Side::Fault => full_load(cell, PORT, "/", cell.draw.number("connections", 8, 6..=32))?,
        Side::Twin => steady_load(cell, PORT, "/", 200, 8)?,
    }
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
