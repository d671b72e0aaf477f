// SPDX-License-Identifier: Apache-2.0
//! A Node service that somebody stops for 0.3 s and lets go on for 0.1 s, or about so, again and again. That is none of its own doing and
//! no cause that has a name; but the time stands on a line of its own. The twin is left alone.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19175;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "stopped",
    about: "a Node service that is stopped by a signal three quarters of the time",
    expected: Expected { line: Some("stopped"), ..Expected::cause(&["not-determined"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/stopped/quotes.js", "quotes.js"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("quotes.js")?;
    let service = Program::installed("node").args(["quotes.js", &PORT.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    steady_load(cell, PORT, "/", 200, 8)?;
    if side == Side::Fault {
        let tenths = cell.draw.number("stopped_tenths_s", 3, 2..=6);
        let stop = format!("while kill -STOP {pid}; do sleep 0.{tenths}; kill -CONT {pid}; sleep 0.1; done");
        cell.start(Program::installed("sh").named("stopper").args(["-c", &stop]).in_group("load"))?;
    }
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
