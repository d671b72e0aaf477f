// SPDX-License-Identifier: Apache-2.0
//! A Node.js service whose loop starts a shell for each request, which waits for a program that takes its time. What is waited
//! for is in processes that live for one request each. The twin's shell starts none.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19478;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "shell-out-node",
    about: "an event loop whose requests wait for a shell and what it starts, 50 ms each",
    expected: Expected { comm: Some("sleep"), end: Some("its own timer"), ..Expected::cause(&["slow-dependency"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/shell-out-node/convert.js", "convert.js"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("convert.js")?;
    let sleep_ms = if side == Side::Fault { cell.draw.number("sleep_ms", 50, 30..=150) } else { 0 };
    let seconds = (sleep_ms as f64 / 1e3).to_string();
    let service = Program::installed("node").args(["convert.js", &PORT.to_string(), &seconds]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 20, 10..=30);
    steady_load(cell, PORT, "/", rate, 16)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
