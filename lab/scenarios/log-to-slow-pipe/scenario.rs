// SPDX-License-Identifier: Apache-2.0
//! A threaded C service that logs each request into a pipe, whose reader takes 4 KiB every 20 ms. The twin's reader takes
//! what it gets.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, THREADED, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19135;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "log-to-slow-pipe",
    about: "a threaded C service that logs into a pipe whose reader is slow",
    expected: Expected { syscall: Some("write"), ..Expected::cause(&["blocked-writer"]) },
    twin: Some(NEUTRAL),
    builds: &[THREADED, Build::Script("lab/scenarios/log-to-slow-pipe/reader.py", "reader.py")],
    folders: &["lab/threaded"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("reader.py")?;
    let made = Command::new("mkfifo").arg(cell.dir().join("log")).status().context("failed to run `mkfifo`")?;
    anyhow::ensure!(made.success(), "failed to make a pipe");
    let (size, rest) = if side == Side::Fault { ("4096", "0.02") } else { ("65536", "0") };
    let reader = Program::installed(PYTHON).named("reader").args(["reader.py", "log", size, rest]);
    cell.start(reader.on_cpus(LOAD_CPU).in_group("load"))?;
    let service = Program::built("threaded").args([&PORT.to_string(), "log", "log", "400"]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    full_load(cell, PORT, "/", 8)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
