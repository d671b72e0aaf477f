// SPDX-License-Identifier: Apache-2.0
//! A C service whose readers hand requests to workers and signal the wrong condition: the workers find them when their own time runs
//! out. A thread reads on at each connection meanwhile, so that nothing seems to be owed there. The twin signals the right one.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19520;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "lost-signal",
    about: "a C service whose workers are never told of a request, and find it when a timeout is over",
    expected: Expected { says: Some("a timer of its own"), ..Expected::cause(&["not-determined"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::C("lab/scenarios/lost-signal/desk.c", "desk"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let patience_ms = cell.draw.number("patience_ms", 50, 30..=120).to_string();
    let how = if side == Side::Fault { "wrong" } else { "right" };
    let service = Program::built("desk").args([&PORT.to_string(), &patience_ms, how]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let (rate, connections) = (cell.draw.number("rate", 100, 60..=300), cell.draw.number("connections", 16, 8..=30));
    steady_load(cell, PORT, "/", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
