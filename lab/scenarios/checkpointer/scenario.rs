// SPDX-License-Identifier: Apache-2.0
//! A control: a Rust service whose requests wait for no disk, while a thread of its own writes checkpoints and waits for the
//! disk most of its time. Nobody waits for that thread.

use std::time::Duration;

use anyhow::Result;

use super::{WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Scenario, Side, UNACCUSED};

const PORT: u16 = 19174;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "checkpointer",
    about: "a threaded Rust service with a thread that syncs checkpoints, beside the requests",
    expected: UNACCUSED,
    twin: None,
    builds: &[Build::Rust("lab/scenarios/checkpointer/counters.rs", "counters"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    let pid = cell.start(Program::built("counters").args([&PORT.to_string(), "2", "50"]))?;
    cell.wait_for_port(PORT)?;
    steady_load(cell, PORT, "/", 300, 8)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
