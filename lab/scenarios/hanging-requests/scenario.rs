// SPDX-License-Identifier: Apache-2.0
//! A Node service that forgets a few of its requests: all answers that come are quick, and those that never come are in no response
//! time. The twin forgets none.

use std::time::Duration;

use anyhow::Result;

use super::{WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19473;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "hanging-requests",
    about: "a Node service that answers at once, and forgets one request in a hundred",
    expected: Expected::cause(&["not-determined"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/hanging-requests/forgetful.js", "forgetful.js"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("forgetful.js")?;
    let one_in = if side == Side::Fault { cell.draw.number("one_in", 100, 60..=150) } else { 0 };
    let args = ["forgetful.js", &PORT.to_string(), &one_in.to_string()];
    let pid = cell.start(Program::installed("node").named("forgetful").args(args))?;
    cell.wait_for_port(PORT)?;
    // Each connection that is forgotten is lost for the load: enough are left to the end.
    steady_load(cell, PORT, "/", 100, 64)?;
    cell.stop.sleep(Duration::from_secs(4))?;
    Ok(Aim::Pid(pid))
}
