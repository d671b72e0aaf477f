// SPDX-License-Identifier: Apache-2.0
//! A Node front whose requests each ask a store that answers any number at once, over a few connections: they stand in a queue of
//! the front's own, of which the kernel sees nothing. The twin has a connection for each of them and waits for the store.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19479;
const STORE: u16 = 19480;

/// The clients: at most so many requests at once.
const CONNECTIONS: u64 = 24;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "loop-pool",
    about: "an event loop whose requests stand before its three connections to a store of 40 ms",
    expected: Expected::cause(&["pool-exhausted"]),
    twin: Some(Expected { end: Some("its own timer"), ..Expected::cause(&["slow-dependency"]) }),
    builds: &[Build::Script("lab/scenarios/loop-pool/front.js", "pool-front.js"), THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("pool-front.js")?;
    let delay_ms = cell.draw.number("delay_ms", 40, 20..=100);
    let pool = cell.draw.number("pool", 3, 1..=6);
    let store = Program::built("threaded").named("store");
    let store = store.args([&STORE.to_string(), "unlocked", &(delay_ms * 1_000).to_string()]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let connections = if side == Side::Fault { pool } else { CONNECTIONS }.to_string();
    let front = Program::installed("node").args(["pool-front.js", &PORT.to_string(), &STORE.to_string(), &connections]);
    let pid = cell.start(front.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // More than the pool can carry, and little for the CPU.
    let asked_percent = cell.draw.number("asked_percent", 150, 120..=250);
    steady_load(cell, PORT, "/", (pool * 1_000 * asked_percent / 100).div_ceil(delay_ms), CONNECTIONS)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
