// SPDX-License-Identifier: Apache-2.0
//! A Node service that is full of one function, which the engine compiled at run time and nobody named. The
//! twin, as full, has its work spread over many functions and over the engine: accusing one would be a bluff.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19101;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "hot-jit",
    about: "a Node service with one hot function and no perf map",
    expected: Expected { function: Some("unnamed JIT-compiled"), ..Expected::cause(&["hot-code"]) },
    twin: Some(Expected::cause(&["at-capacity"])),
    builds: &[Build::Script("lab/scenarios/hot-jit/rank.js", "rank.js")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("rank.js")?;
    let way = if side == Side::Fault { "naive" } else { "cached" };
    let service = Program::installed("node").args(["rank.js", &PORT.to_string(), way]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 8, 4..=24);
    full_load(cell, PORT, "/rank", connections)?;
    // Until the engine has compiled what is worth it.
    cell.stop.sleep(Duration::from_secs(4))?;
    Ok(Aim::Pid(pid))
}
