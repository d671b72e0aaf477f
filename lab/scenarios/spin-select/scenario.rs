// SPDX-License-Identifier: Apache-2.0
//! A Go service with a goroutine whose select has a default, so that it looks for work all the time without a system call.
//! More threads would only spin more. The twin blocks in its select.

use std::time::Duration;

use anyhow::Result;

use super::{WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19244;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "spin-select",
    about: "a Go service that looks for work in a select with a default",
    expected: Expected::cause(&["hot-code"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Go("lab", "./scenarios/spin-select", "turnstile"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let spin = if side == Side::Fault { "-spin=true" } else { "-spin=false" };
    let pid = cell.start(Program::built("turnstile").args(["-listen", &format!("127.0.0.1:{PORT}"), spin]))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 50, 10..=300);
    steady_load(cell, PORT, "/", rate, 4)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
