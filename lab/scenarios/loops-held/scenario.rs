// SPDX-License-Identifier: Apache-2.0
//! Several event loops side by side, as workers of one service are: each computes for long now and then, and whoever has a connection to
//! it waits meanwhile, though the others are free. The twin's compute as much, in pieces.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, WEBLOAD, own_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19609;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "loops-held",
    about: "asyncio workers of which each computes 120 ms for one request in 25, while the others of its own wait",
    expected: Expected::cause(&["event-loop-blocked"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/loops-held/reports.py", "reports.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("reports.py")?;
    let loops = cell.draw.number("loops", 2, 2..=3);
    let milliseconds = cell.draw.number("milliseconds", 120, 80..=200);
    let every = cell.draw.number("every", 25, 15..=40);
    // Of the time of each loop, for reports: with less, those who wait behind one are fewer than those who ask for one.
    let percent = cell.draw.number("percent", 50, 40..=60);
    let rate = loops * percent * 10 * every / milliseconds;
    let how = if side == Side::Fault { "at-once" } else { "pieces" };
    let numbers = [u64::from(PORT), loops, every, milliseconds].map(|number| number.to_string());
    let reports = Program::installed(PYTHON).args(["reports.py"]).args(&numbers).args([how]);
    let pid = cell.start(reports.on_cpus(&[SERVICE_CPU, LOAD_CPU].concat()))?;
    cell.wait_for_port(PORT)?;
    own_load(cell, PORT, rate, 32)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
