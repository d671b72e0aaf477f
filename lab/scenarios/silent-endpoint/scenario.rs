// SPDX-License-Identifier: Apache-2.0
//! A Go service of which one page asks a store that says nothing: those requests hang, while all others are answered at once, so that
//! no percentile shows it. The twin's store answers.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19485;
const STORE: u16 = 19486;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "silent-endpoint",
    about: "a Go service whose one page waits for a silent store, while the others are quick",
    expected: Expected::cause(&["slow-dependency"]),
    twin: Some(NEUTRAL),
    builds: &[
        Build::Go("lab", "./scenarios/silent-endpoint", "quotes"),
        Build::Script("lab/scenarios/silent-store/store.js", "silent-store.js"),
        WEBLOAD,
    ],
    folders: &["lab/scenarios/silent-store", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("silent-store.js")?;
    // For so many seconds it answers.
    let answers_for = if side == Side::Fault { "0" } else { "100000" };
    let store = Program::installed("node").args(["silent-store.js", &STORE.to_string(), answers_for]).named("store");
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let service = Program::built("quotes").args([PORT.to_string(), STORE.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 100, 40..=300);
    let hanging = cell.draw.number("hanging", 6, 4..=24);
    steady_load(cell, PORT, "/", rate, 16)?;
    steady_load(cell, PORT, "/quote", 20, hanging)?;
    cell.stop.sleep(Duration::from_secs(4))?;
    Ok(Aim::Pid(pid))
}
