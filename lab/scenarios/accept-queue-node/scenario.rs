// SPDX-License-Identifier: Apache-2.0
//! A Node.js service whose handler computes for tens of milliseconds: meanwhile nobody takes connections, the accept queue is
//! full and the kernel drops handshakes. The code is the cause, the queue a link. The twin computes next to nothing.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19191;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "accept-queue-node",
    about: "a Node.js service with tens of ms of synchronous work a request, a backlog of 16 and a connection for each",
    expected: Expected { also: Some("accept-queue-full"), ..Expected::cause(&["hot-code"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/accept-queue-node/checkout.js", "checkout.js"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("checkout.js")?;
    let rounds = if side == Side::Fault { cell.draw.number("rounds", 6, 5..=12) } else { 0 }.to_string();
    let backlog = cell.draw.number("backlog", 16, 8..=24).to_string();
    let service = Program::installed("node").args(["checkout.js", &PORT.to_string(), &backlog, &rounds]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // Of the twin's clients, all find room in the queue.
    let connections = if side == Side::Fault { 100 } else { 6 };
    steady_load(cell, PORT, "/", 150, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
