// SPDX-License-Identifier: Apache-2.0
//! A Python service that waits for a store whose answer drips, on a CPU that a busy loop of somebody else uses as well. Each wait for a
//! part is short, and so is each for the CPU; but all that clients wait for is the store. The twin's store sends all at once, and the
//! CPU is the service's own.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19166;
const STORE: u16 = 19167;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "dripping-store",
    about: "a Python service beside a busy loop, before a store whose answer drips",
    // Of a question that is answered in half a millisecond, looks find too few to tell whether it had been sent.
    expected: Expected::cause(&["slow-dependency", "not-determined"]),
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/dripping-store/page.py", "page.py"),
        Build::Script("lab/scenarios/dripping-store/store.js", "store.js"),
        WEBLOAD,
    ],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("page.py")?;
    cell.bring("store.js")?;
    let parts = cell.draw.number("parts", 150, 80..=200).to_string();
    let every = if side == Side::Fault { cell.draw.number("every_ms", 3, 2..=4) } else { 0 };
    let args = ["store.js", &STORE.to_string(), &parts, &every.to_string()];
    cell.start(Program::installed("node").named("store").args(args).on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let args = ["page.py", &PORT.to_string(), &STORE.to_string()];
    let pid = cell.start(Program::installed("python3").named("page").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    if side == Side::Fault {
        let neighbour = Program::installed("sh").args(["-c", "while :; do :; done"]).named("neighbour");
        cell.start(neighbour.on_cpus(SERVICE_CPU).in_group("neighbour"))?;
    }
    steady_load(cell, PORT, "/", cell.draw.number("rate", 15, 10..=20), 16)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
