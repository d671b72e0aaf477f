// SPDX-License-Identifier: Apache-2.0
//! A Node service of which one request in some dozens computes for long, while all others wait for their turn. Neither the
//! thread nor a CPU is full, and most answers are quick. The twin computes as much, in pieces.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19301;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "loop-held",
    about: "a Node service whose event loop computes 100 ms for one request in 25, while the others wait",
    expected: Expected::cause(&["event-loop-blocked"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/loop-held/reports.js", "reports.js"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("reports.js")?;
    let milliseconds = cell.draw.number("milliseconds", 100, 60..=200);
    let every = cell.draw.number("every", 25, 20..=60);
    // Of the loop's time, for reports: from a half on, half of all requests stand behind one; of little, with few others, those who ask for
    // a report wait for themselves about as long as the others for them.
    let percent = cell.draw.number("percent", 30, 25..=60);
    let rate = percent * 10 * every / milliseconds;
    let how = if side == Side::Fault { "at-once" } else { "pieces" };
    let args = ["reports.js", &PORT.to_string(), &every.to_string(), &milliseconds.to_string(), how];
    let pid = cell.start(Program::installed("node").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    steady_load(cell, PORT, "/", rate, 32)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
