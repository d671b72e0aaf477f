// SPDX-License-Identifier: Apache-2.0
//! A Python service that asks a store over a new connection for each request, with few local ports: those of connections that
//! have ended are kept for a while, so that most requests fail at once. The twin keeps its connections.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19197;
const STORE: u16 = 19198;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "port-exhaustion",
    about: "a Python service with a new connection to its store for each request, and a hundred local ports",
    expected: Expected::cause(&["port-exhaustion"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/port-exhaustion/relay.py", "relay.py"), THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("relay.py")?;
    let last = 40_000 + cell.draw.number("ports", 100, 60..=120) - 1;
    cell.write_inside("/proc/sys/net/ipv4/ip_local_port_range", &format!("40000 {last}"))?;
    let store = Program::built("threaded").named("store").args([&STORE.to_string(), "unlocked", "500"]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let mode = if side == Side::Fault { "new" } else { "kept" };
    let relay = Program::installed(PYTHON).args(["relay.py", &PORT.to_string(), &STORE.to_string(), mode]);
    let pid = cell.start(relay.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // On loopback a port is free again after a second.
    steady_load(cell, PORT, "/", 250, 8)?;
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(Aim::Pid(pid))
}
