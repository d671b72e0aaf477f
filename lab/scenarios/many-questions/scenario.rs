// SPDX-License-Identifier: Apache-2.0
//! A threaded Python service that asks its store for each item of a basket, one after the other. Each answer takes a millisecond or
//! two, which is nobody's fault, and all together are what clients wait for. The twin asks once.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19475;
const STORE: u16 = 19476;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "many-questions",
    about: "a threaded Python service that asks its store of a millisecond thirty times for each request",
    expected: Expected::cause(&["slow-dependency"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/many-questions/basket.py", "basket.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("basket.py")?;
    let delay = cell.draw.number("delay_ms", 1, 1..=3);
    let questions = if side == Side::Fault { cell.draw.number("questions", 30, 20..=60) } else { 1 };
    let store = ["basket.py", "store", &STORE.to_string(), &delay.to_string()];
    cell.start(Program::installed(PYTHON).named("store").args(store))?;
    cell.wait_for_port(STORE)?;
    let service = ["basket.py", "serve", &PORT.to_string(), &STORE.to_string(), &questions.to_string()];
    let pid = cell.start(Program::installed(PYTHON).named("basket").args(service))?;
    cell.wait_for_port(PORT)?;
    steady_load(cell, PORT, "/", 30, 16)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
