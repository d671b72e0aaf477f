// SPDX-License-Identifier: Apache-2.0
//! A Python service with a few threads, a few clients that read its large answers slowly, and many with small requests, who wait
//! until a thread has written to one of the slow ones. The twin's read as fast as it comes.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19489;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-clients",
    about: "a Python service whose few threads write to slow clients while others wait",
    // Where hardly a thread is ever free, it is as much a pool that is too small.
    expected: Expected::cause(&["receiver-limited", "pool-exhausted"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/slow-clients/downloads.py", "downloads.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("downloads.py")?;
    let threads = cell.draw.number("threads", 3, 2..=4);
    // Four megabytes of it fit into the send buffer, and a write of those waits for nobody. Not so long that a capture has less than two
    // such answers one after the other: what happens once may not come again.
    let size = cell.draw.number("kilobytes", 12_000, 9_000..=12_000) * 1_000;
    let args = ["downloads.py", "serve", &PORT.to_string(), &threads.to_string(), &size.to_string()];
    let pid = cell.start(Program::installed(PYTHON).named("downloads").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let pace = if side == Side::Fault { cell.draw.number("bytes_a_ms", 6_000, 6_000..=9_000) } else { 0 };
    let numbers = [threads, pace, 300].map(|number| number.to_string());
    let reader = Program::installed(PYTHON).named("readers").args(["downloads.py", "read", &PORT.to_string()]);
    cell.start(reader.args(&numbers).on_cpus(LOAD_CPU).in_group("load"))?;
    let rate = cell.draw.number("rate", 30, 20..=50);
    steady_load(cell, PORT, "/", rate, 16)?;
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(Aim::Pid(pid))
}
