// SPDX-License-Identifier: Apache-2.0
//! A Node.js service whose only thread has been at one regular expression for some time, and will be for ever: nobody gets an answer
//! any more. It is full, but with nothing that more processes would carry. The twin is never asked for that.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19483;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "endless-loop",
    about: "a Node service whose loop is in a regular expression that does not end",
    expected: Expected { comm: Some("node"), ..Expected::cause(&["event-loop-blocked"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/endless-loop/tags.js", "tags.js"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("tags.js")?;
    let requests = if side == Side::Fault { cell.draw.number("requests", 100, 20..=200) } else { 0 };
    let service = Program::installed("node").args(["tags.js", &PORT.to_string(), &requests.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 16, 4..=60);
    steady_load(cell, PORT, "/", 100, connections)?;
    cell.stop.sleep(Duration::from_secs(5))?;
    Ok(Aim::Pid(pid))
}
