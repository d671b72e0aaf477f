// SPDX-License-Identifier: Apache-2.0
//! A Python service whose threads sleep 15 ms between two looks for their result. The twin looks again at once.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19121;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "sleep-in-path",
    about: "a threaded Python service that sleeps 15 ms in each request",
    expected: Expected { syscall: Some("nanosleep"), ..Expected::cause(&["sleep-in-path"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/sleep-in-path/api.py", "api.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("api.py")?;
    let sleep_ms = if side == Side::Fault { cell.draw.number("sleep_ms", 15, 5..=40) } else { 0 };
    let step = (sleep_ms as f64 / 1e3).to_string();
    let pid = cell.start(Program::installed(PYTHON).args(["api.py", &PORT.to_string(), &step]))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 120, 60..=150);
    let connections = cell.draw.number("connections", 4, 4..=8);
    steady_load(cell, PORT, "/", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
