// SPDX-License-Identifier: Apache-2.0
//! A Python service that corks its sockets and never draws the cork: each answer is begun at once, and its bytes stand in the send
//! queue until the kernel lets go of them after 200 ms. The twin draws it.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19591;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "corked",
    about: "a Python service whose answers TCP_CORK keeps back",
    expected: Expected { says: Some("TCP_CORK keeps"), ..Expected::cause(&["not-determined"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/corked/page.py", "page.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("page.py")?;
    let draws = if side == Side::Fault { "never" } else { "draws" };
    let args = ["page.py", &PORT.to_string(), draws];
    let pid = cell.start(Program::installed("python3").named("page").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 60, 20..=150);
    steady_load(cell, PORT, "/", rate, 64)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
