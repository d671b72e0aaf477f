// SPDX-License-Identifier: Apache-2.0
//! An asyncio front whose requests each ask a store that answers any number at once. It has connections enough, and a semaphore that
//! lets a few ask at once: requests stand before that, and no connection is ever taken all the time. The twin's lets all of them.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19490;
const STORE: u16 = 19491;

/// The clients, and connections to the store: at most so many requests at once.
const CONNECTIONS: u64 = 24;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "limited-asking",
    about: "an event loop that lets two of its requests at once ask a store of 40 ms",
    expected: Expected::cause(&["pool-exhausted"]),
    twin: Some(Expected { end: Some("its own timer"), ..Expected::cause(&["slow-dependency"]) }),
    builds: &[Build::Script("lab/scenarios/limited-asking/front.py", "limited-front.py"), THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("limited-front.py")?;
    let delay_ms = cell.draw.number("delay_ms", 40, 20..=100);
    let at_once = cell.draw.number("at_once", 2, 1..=6);
    let store = Program::built("threaded").named("store");
    let store = store.args([&STORE.to_string(), "unlocked", &(delay_ms * 1_000).to_string()]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let room = if side == Side::Fault { at_once } else { CONNECTIONS };
    let numbers = [u64::from(PORT), u64::from(STORE), CONNECTIONS, room].map(|number| number.to_string());
    let front = Program::installed(PYTHON).named("front").args(["limited-front.py"]).args(&numbers);
    let pid = cell.start(front.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // More than is let through, and little for the CPU.
    let asked_percent = cell.draw.number("asked_percent", 150, 120..=250);
    steady_load(cell, PORT, "/", (at_once * 1_000 * asked_percent / 100).div_ceil(delay_ms), CONNECTIONS)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
