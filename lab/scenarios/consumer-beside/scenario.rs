// SPDX-License-Identifier: Apache-2.0
//! A service whose requests wait for a store, beside threads that poll a queue for news all the time: those wait far longer, for somebody
//! whom no client waits for. The twin's store is quick, and nobody is slow.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19606;
const STORE: u16 = 19607;
const QUEUE: u16 = 19608;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "consumer-beside",
    about: "a service that waits for a store, beside threads that poll a queue",
    expected: Expected { comm: Some("threaded"), ..Expected::cause(&["slow-dependency"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/consumer-beside/orders.py", "orders.py"), THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("orders.py")?;
    let delay_ms = cell.draw.number("delay_ms", 40, 20..=150);
    let delay_us = if side == Side::Fault { delay_ms * 1_000 } else { 500 };
    let store = Program::built("threaded").named("store");
    let store = store.args([&STORE.to_string(), "unlocked", &delay_us.to_string()]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let poll_ms = cell.draw.number("poll_ms", 500, 100..=900).to_string();
    let queue = Program::installed(PYTHON).named("queue").args(["orders.py", "queue", &QUEUE.to_string(), &poll_ms]);
    cell.start(queue.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(QUEUE)?;
    let consumers = cell.draw.number("consumers", 3, 1..=6).to_string();
    let [port, store, queue] = [PORT, STORE, QUEUE].map(|port| port.to_string());
    let orders =
        Program::installed(PYTHON).named("orders").args(["orders.py", "serve", &port, &store, &queue, &consumers]);
    let pid = cell.start(orders.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 40, 10..=80);
    steady_load(cell, PORT, "/", rate, 8)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
