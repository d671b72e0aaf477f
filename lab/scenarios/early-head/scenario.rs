// SPDX-License-Identifier: Apache-2.0
//! A Go service that sends the head of each answer at once and the rest when a store has answered, from a timer of 250 ms: its first
//! bytes are quick, and its clients wait for the store all the same. The twin's store answers at once.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19595;
const STORE: u16 = 19596;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "early-head",
    about: "a Go service that sends the head of an answer before it asks its slow store",
    expected: Expected::cause(&["slow-dependency"]),
    twin: Some(NEUTRAL),
    builds: &[
        Build::Go("lab", "./scenarios/early-head", "gallery"),
        Build::Script("lab/scenarios/slow-store/store.js", "store.js"),
        WEBLOAD,
    ],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("store.js")?;
    let delay = if side == Side::Fault { cell.draw.number("delay_ms", 250, 60..=500) } else { 0 };
    let store = Program::installed("node").named("store").args(["store.js", &STORE.to_string(), &delay.to_string()]);
    cell.start(store.args(["127.0.0.1"]).on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let service = Program::built("gallery").args([PORT.to_string(), STORE.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 40, 20..=80);
    steady_load(cell, PORT, "/", rate, 64)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
