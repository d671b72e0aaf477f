// SPDX-License-Identifier: Apache-2.0
//! A Go service that maps and unmaps a buffer in each request, while one of its goroutines changes the protection of 1 GB
//! again and again: the requests stand before the lock of the memory map. Nobody can be accused of that yet, a disk least of
//! all. The twin has no such goroutine.

use std::time::Duration;

use anyhow::Result;

use super::{WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19172;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "mmap-lock",
    about: "a Go service whose requests stand before the lock of its memory map",
    expected: Expected {
        line: Some("blocked_kernel_lock"),
        ..Expected::cause(&["not-determined", "at-capacity", "hot-code"])
    },
    twin: Some(NEUTRAL),
    builds: &[Build::Go("lab", "./scenarios/mmap-lock", "thumbnails"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let table = if side == Side::Fault { "1024" } else { "0" };
    let service = Program::built("thumbnails").args(["-listen", &format!("127.0.0.1:{PORT}"), "-table", table]);
    let pid = cell.start(service)?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 400, 300..=500);
    let connections = cell.draw.number("connections", 16, 8..=24);
    steady_load(cell, PORT, "/", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
