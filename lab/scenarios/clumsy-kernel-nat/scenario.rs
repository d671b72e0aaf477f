// SPDX-License-Identifier: Apache-2.0
//! A Node.js service with a connection for each request, and three clients behind one address: their ports come again while the
//! service still has the old connection of another client in TIME_WAIT, whose clock was ahead. The twin has one client, with as
//! many sockets in TIME_WAIT, and nothing is refused.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, SERVICE_CPU, WEBLOAD};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19196;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "clumsy-kernel-nat",
    about: "a Node.js service with a connection for each request, and three clients behind one address",
    expected: Expected::cause(&["time-wait-collision"]),
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/accept-queue-node/checkout.js", "checkout.js"),
        Build::Script("lab/scenarios/clumsy-kernel-nat/nat.py", "nat.py"),
        WEBLOAD,
    ],
    folders: &["lab/scenarios/accept-queue-node", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    for name in ["checkout.js", "nat.py", "webload"] {
        cell.bring(name)?;
    }
    let service = Program::installed("node").args(["checkout.js", &PORT.to_string(), "511", "0", "0.0.0.0"]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let clients = if side == Side::Fault { 3 } else { 1 };
    let rate = cell.draw.number("rate", 600, 500..=900) / clients;
    let url = format!("http://10.203.0.1:{PORT}/");
    let (clients, rate) = (clients.to_string(), rate.to_string());
    let ask = ["./webload", "-url", &url, "-rate", &rate, "-connections", "16"];
    let nat = Program::installed(PYTHON).args(["nat.py", &clients, "loose"]).args(ask);
    cell.start(nat.far().in_group("load"))?;
    // So long that most ports have been used.
    cell.stop.sleep(Duration::from_secs(6))?;
    Ok(Aim::Pid(pid))
}
