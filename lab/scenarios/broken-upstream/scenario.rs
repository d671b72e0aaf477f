// SPDX-License-Identifier: Apache-2.0
//! A Python relay whose store resets its connections with a question in hand now and then: it asks again, and its own clients get
//! quick answers. The twin's store closes them in good order after as many answers.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19504;
const STORE_PORT: u16 = 19505;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "broken-upstream",
    about: "a Python relay whose store resets connections with a question in hand",
    expected: Expected { says: Some("broken off by a reset"), ..Expected::cause(&["not-determined"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/broken-upstream/relay.py", "relay.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("relay.py")?;
    let how = if side == Side::Fault { "reset" } else { "close" };
    let each = cell.draw.number("answers", 15, 5..=40).to_string();
    let store = ["relay.py", "store", &STORE_PORT.to_string(), &each, how];
    cell.start(Program::installed(PYTHON).named("store").args(store).in_group("store"))?;
    cell.wait_for_port(STORE_PORT)?;
    let front = ["relay.py", "front", &PORT.to_string(), &STORE_PORT.to_string()];
    let pid = cell.start(Program::installed(PYTHON).named("relay").args(front).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 200, 120..=300);
    steady_load(cell, PORT, "/", rate, 8)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
