// SPDX-License-Identifier: Apache-2.0
//! An asyncio service of which one request in sixty waits on a timer of the loop for a thousand times longer than the others take.
//! What those have in common is not seen from outside, and nearly all that clients wait is theirs. The twin's answer at once.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19474;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "few-slow",
    about: "an asyncio service of which one answer in sixty waits 300 ms on a timer, among quick ones",
    expected: Expected::cause(&["not-determined"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/few-slow/backoff.py", "backoff.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("backoff.py")?;
    let one_in = if side == Side::Fault { cell.draw.number("one_in", 60, 20..=60) } else { 0 };
    let seconds = (cell.draw.number("wait_ms", 300, 100..=400) as f64 / 1e3).to_string();
    let args = ["backoff.py", &PORT.to_string(), &one_in.to_string(), &seconds];
    let pid = cell.start(Program::installed(PYTHON).named("backoff").args(args))?;
    cell.wait_for_port(PORT)?;
    steady_load(cell, PORT, "/", 120, 12)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
