// SPDX-License-Identifier: Apache-2.0
//! A Node.js service that answers at once and forgets to close its side when a client has closed: connections pile up in
//! CLOSE_WAIT. Nobody waits for anything, since a client that goes away asks nothing by that; but it is said, as the descriptors
//! will not last. The twin closes them.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, reconnecting_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19492;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "never-closed",
    about: "a Node.js service that never closes the connections which its clients have closed",
    expected: Expected { says: Some("connections that clients closed stay open"), ..NEUTRAL },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/never-closed/relay.js", "relay.js"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("relay.js")?;
    let mode = if side == Side::Fault { "forgets" } else { "closes" };
    let service = Program::installed("node").args(["relay.js", &PORT.to_string(), mode]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 60, 40..=120);
    reconnecting_load(cell, PORT, rate, 8)?;
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(Aim::Pid(pid))
}
