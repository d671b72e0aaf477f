// SPDX-License-Identifier: Apache-2.0
//! A Node service that takes as many connections as its first clients keep: those who come later are turned away, and the others
//! get their answers as quickly as ever. The twin has room for all.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, own_load, reconnecting_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19169;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "connection-limit",
    about: "a Node service that closes the connections of clients for whom it has no place",
    expected: Expected {
        says: Some("closed by the service before it had answered anything"),
        ..Expected::cause(&["not-determined"])
    },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/connection-limit/limited.js", "limited.js"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("limited.js")?;
    let most = cell.draw.number("most", 10, 4..=30);
    let places = if side == Side::Fault { most } else { 1000 };
    let service = Program::installed("node").args(["limited.js", &PORT.to_string(), &places.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let (rate, newcomers) = (cell.draw.number("rate", 300, 100..=500), cell.draw.number("newcomers", 40, 20..=100));
    own_load(cell, PORT, rate, most)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    reconnecting_load(cell, PORT, newcomers, 16)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
