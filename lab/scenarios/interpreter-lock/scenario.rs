// SPDX-License-Identifier: Apache-2.0
//! A Python service with a thread for each client, and one beside them that computes a report: requests stand before the
//! interpreter's lock meanwhile. Nothing tells whether the report is work for clients, so that nobody is accused, but the
//! service is not healthy either. The twin computes no report.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19183;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "interpreter-lock",
    about: "a threaded Python service beside whose threads another one computes under the interpreter's lock",
    expected: Expected::cause(&["not-determined"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/interpreter-lock/quotes.py", "quotes.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("quotes.py")?;
    // Half of the time at most: a thread that computes all the time is a limit, and said to be one.
    let report_ms = if side == Side::Fault { cell.draw.number("report_ms", 150, 100..=180) } else { 0 };
    let pid = cell.start(Program::installed(PYTHON).args(["quotes.py", &PORT.to_string(), &report_ms.to_string()]))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 120, 60..=150);
    let connections = cell.draw.number("connections", 4, 4..=8);
    steady_load(cell, PORT, "/", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
