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
    let rest_ms = cell.draw.number("rest_ms", 20, 10..=40);
    let slow = (rest_ms as f64 / 1e3).to_string();
    let (size, rest) = if side == Side::Fault { ("4096", slow.as_str()) } else { ("65536", "0") };
    let reader = Program::installed(PYTHON).named("reader").args(["reader.py", "log", size, rest]);
    cell.start(reader.on_cpus(LOAD_CPU).in_group("load"))?;
    let line_bytes = cell.draw.number("line_bytes", 400, 200..=2000).to_string();
    let service = Program::built("threaded").args([&PORT.to_string(), "log", "log", &line_bytes]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 8, 4..=16);
    full_load(cell, PORT, "/", connections)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
