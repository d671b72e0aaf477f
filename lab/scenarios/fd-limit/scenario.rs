// SPDX-License-Identifier: Apache-2.0
//! A C event loop that may open no more files than some of its clients need: the others stand in the accept queue, and the loop
//! is told of them again and again, asks for one and gets an error each time. The twin may open enough.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19193;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "fd-limit",
    about: "a C event loop whose limit of open files is smaller than the number of its clients",
    expected: Expected::cause(&["fd-exhausted"]),
    twin: Some(NEUTRAL),
    builds: &[Build::C("lab/scenarios/loop-sleeps/gauge.c", "gauge")],
    folders: &["lab/scenarios/loop-sleeps"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("gauge")?;
    let few = cell.draw.number("files", 40, 24..=80);
    let files = if side == Side::Fault { few } else { 1024 };
    let limit = format!("--nofile={files}:{files}");
    let service = Program::installed("prlimit").args([&limit, "./gauge", &PORT.to_string(), "0"]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // Each client has a connection of its own, and keeps it.
    full_load(cell, PORT, "/", few + 20)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
