// SPDX-License-Identifier: Apache-2.0
//! A Python service with one thread that reads and two that answer: these look for work now and then, and sleep in between, so that
//! whatever comes waits for the end of a nap that began before it came. The twin's are told when there is work.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19495;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "worker-naps",
    about: "a Python service whose workers look for work every 50 ms",
    expected: Expected { syscall: Some("nanosleep"), ..Expected::cause(&["sleep-in-path"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/worker-naps/tickets.py", "tickets.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("tickets.py")?;
    let nap_ms = cell.draw.number("nap_ms", 50, 40..=120);
    let nap_ms = if side == Side::Fault { nap_ms } else { 0 };
    let pid = cell.start(Program::installed(PYTHON).args(["tickets.py", &PORT.to_string(), &nap_ms.to_string()]))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 60, 30..=120);
    steady_load(cell, PORT, "/", rate, 16)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
