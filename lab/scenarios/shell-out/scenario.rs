// SPDX-License-Identifier: Apache-2.0
//! A Python service whose threads start a shell for each request, which waits for a program that takes its time. What is waited
//! for is in processes that live for one request each. The twin's shell starts none.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19477;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "shell-out",
    about: "a threaded Python service whose requests wait for a shell and what it starts, 50 ms each",
    expected: Expected { comm: Some("sleep"), end: Some("its own timer"), ..Expected::cause(&["slow-dependency"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/shell-out/convert.py", "convert.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    convert(cell, side, (PYTHON, "convert.py"), PORT)
}

/// Starts the service, which this program runs from a script, and its load.
pub(super) fn convert(cell: &mut Cell, side: Side, (program, script): (&str, &'static str), port: u16) -> Result<Aim> {
    cell.bring(script)?;
    let sleep_ms = if side == Side::Fault { cell.draw.number("sleep_ms", 50, 30..=150) } else { 0 };
    let seconds = (sleep_ms as f64 / 1e3).to_string();
    let service = Program::installed(program).args([script, &port.to_string(), &seconds]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(port)?;
    let rate = cell.draw.number("rate", 20, 10..=30);
    steady_load(cell, port, "/", rate, 16)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
