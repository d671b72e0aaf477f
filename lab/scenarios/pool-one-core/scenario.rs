// SPDX-License-Identifier: Apache-2.0
//! A C service whose sixteen threads share nothing and happen to use one CPU of two, second by second: nothing is full,
//! and nothing makes them run one at a time.

use std::time::Duration;

use anyhow::Result;

use super::{WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19187;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "pool-one-core",
    about: "a C service whose 16 threads happen to use about one CPU of two",
    expected: Expected::cause(&["healthy"]),
    twin: None,
    builds: &[Build::C("lab/scenarios/pool-one-core/pool.c", "pool"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    let rate = cell.draw.number("rate", 500, 350..=650);
    let each_us = 950_000 / rate;
    let pid = cell.start(Program::built("pool").args([PORT.to_string(), each_us.to_string()]))?;
    cell.wait_for_port(PORT)?;
    steady_load(cell, PORT, "/", rate, 16)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
