// SPDX-License-Identifier: Apache-2.0
//! A server that never waits in epoll_wait either, by choice: at full use each poll brings work, and
//! a wait would only add its cost. Timeout 0 alone is not a fault.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, NEUTRAL, Scenario, Side};

const PORT: u16 = 19091;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "poll-with-work",
    about: "a C server that polls with timeout 0 at full use, and finds work each time",
    expected: NEUTRAL,
    twin: None,
    builds: &[Build::C("lab/scenarios/poll-with-work/pollwork.c", "pollwork")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    cell.start(Program::built("pollwork").args([PORT.to_string()]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let url = format!("http://127.0.0.1:{PORT}/");
    let load = Program::installed("wrk").args(["-t1", "-c64", "-d300s", &url]);
    cell.start(load.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Comm("pollwork"))
}
