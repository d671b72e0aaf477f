// SPDX-License-Identifier: Apache-2.0
//! A Go service whose clients wait for a store behind it, and of which far more health checks are answered at once, at a port of
//! their own: nearly all answers are quick, and nearly all that anybody waits is for the others. The twin's store is quick.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19603;
const HEALTH: u16 = 19604;
const STORE: u16 = 19605;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "health-port",
    about: "a service behind which a store takes its time, and more health checks at a port of their own",
    expected: Expected { end: Some("its own timer"), ..Expected::cause(&["slow-dependency"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Go("lab", "./scenarios/health-port", "orders"), THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let delay_ms = cell.draw.number("delay_ms", 120, 40..=400);
    let delay_us = if side == Side::Fault { delay_ms * 1_000 } else { 500 };
    let store = Program::built("threaded").named("store");
    let store = store.args([&STORE.to_string(), "unlocked", &delay_us.to_string()]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let at = |port: u16| format!("127.0.0.1:{port}");
    let args = ["-listen", &at(PORT), "-health", &at(HEALTH), "-store", &format!("http://{}/", at(STORE))];
    let pid = cell.start(Program::built("orders").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    cell.wait_for_port(HEALTH)?;
    let rate = cell.draw.number("rate", 15, 10..=40);
    steady_load(cell, PORT, "/", rate, 16)?;
    let checks = cell.draw.number("checks_an_order", 12, 2..=30);
    steady_load(cell, HEALTH, "/", rate * checks, 4)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
