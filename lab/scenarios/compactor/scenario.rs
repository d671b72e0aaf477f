// SPDX-License-Identifier: Apache-2.0
//! A Go service that answers from memory, beside a goroutine of its own that syncs a file all the time: most of its blocked
//! time is a disk's, and no request waits for it.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, NEUTRAL, Scenario, Side};

const PORT: u16 = 19243;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "compactor",
    about: "a Go service that answers from memory, and syncs a file in the background",
    expected: NEUTRAL,
    twin: None,
    builds: &[Build::Go("lab", "./scenarios/compactor", "compactor"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    let kilobytes = cell.draw.number("kilobytes", 256, 16..=1024).to_string();
    let args = ["-listen", &format!("127.0.0.1:{PORT}"), "-kilobytes", &kilobytes];
    let pid = cell.start(Program::built("compactor").args(args).on_cpus(&[SERVICE_CPU, LOAD_CPU].concat()))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 500, 20..=2000);
    steady_load(cell, PORT, "/", rate, 8)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
