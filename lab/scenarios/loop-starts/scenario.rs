// SPDX-License-Identifier: Apache-2.0
//! An asyncio service that starts a program for some of its requests, and waits for it in the handler: meanwhile all others stand. The
//! twin starts one now and then that is done at once.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19545;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "loop-starts",
    about: "an asyncio loop that starts a program of 40 ms for one request in eight, and waits for it",
    expected: Expected::cause(&["event-loop-blocked"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/loop-starts/thumb.py", "thumb.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("thumb.py")?;
    let sleep_ms = if side == Side::Fault { cell.draw.number("sleep_ms", 40, 20..=100) } else { 0 };
    let every = cell.draw.number("every", 8, 8..=20);
    let how = ["read", "wait"][cell.draw.number("how", 0, 0..=1) as usize];
    let (port, seconds) = (PORT.to_string(), (sleep_ms as f64 / 1e3).to_string());
    let service = Program::installed(PYTHON).args(["thumb.py", &port, &seconds, &every.to_string(), how]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // The program runs for some part of the time; to start it takes a few milliseconds of CPU time besides.
    let asleep_percent = cell.draw.number("asleep_percent", 45, 40..=60);
    let a_second = if side == Side::Fault { asleep_percent * 10 * every / sleep_ms } else { 40 };
    steady_load(cell, PORT, "/", a_second.max(20), 16)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
