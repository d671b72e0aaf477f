// SPDX-License-Identifier: Apache-2.0
//! A Go service that collects garbage many times a second, each time a little: normal for Go, and
//! not the reason of anything.

use std::time::Duration;

use anyhow::Result;

use super::{WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, NEUTRAL, Scenario, Side};

const PORT: u16 = 19071;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "go-small-gc",
    about: "a Go service with a small heap and frequent, short garbage collections",
    expected: NEUTRAL,
    twin: None,
    builds: &[Build::Go("lab", "./scenarios/go-small-gc", "thumbs"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    let pid = cell.start(Program::built("thumbs").args(["-listen", &format!("127.0.0.1:{PORT}")]))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 300, 100..=500);
    let connections = cell.draw.number("connections", 8, 4..=16);
    steady_load(cell, PORT, "/thumb", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
