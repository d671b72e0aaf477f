// SPDX-License-Identifier: Apache-2.0
//! Clients that scenarios share.

use anyhow::Result;

use super::LOAD_CPU;
use crate::cell::{Cell, Program};

/// Asks for a path as fast as it is answered, over some connections, until the cell is closed.
pub(super) fn full_load(cell: &mut Cell, port: u16, path: &str, connections: u64) -> Result<()> {
    let url = format!("http://127.0.0.1:{port}{path}");
    let load = Program::installed("wrk").args(["-t1", &format!("-c{connections}"), "-d300s", &url]);
    cell.start(load.on_cpus(LOAD_CPU).in_group("load")).map(drop)
}

/// Asks for a path so many times a second, over some connections, until the cell is closed; needs `WEBLOAD`.
pub(super) fn steady_load(cell: &mut Cell, port: u16, path: &str, rate: u64, connections: u64) -> Result<()> {
    steady_client(cell, port, path, rate, connections).map(drop)
}

/// The same; returns the client's process.
pub(super) fn steady_client(cell: &mut Cell, port: u16, path: &str, rate: u64, connections: u64) -> Result<u32> {
    client(cell, &[], (port, path), rate, connections)
}

/// The same for the path `/` over a connection for each request.
pub(super) fn reconnecting_load(cell: &mut Cell, port: u16, rate: u64, connections: u64) -> Result<()> {
    client(cell, &["-reconnect"], (port, "/"), rate, connections).map(drop)
}

/// The same over one connection for each of so many clients.
pub(super) fn own_load(cell: &mut Cell, port: u16, rate: u64, connections: u64) -> Result<()> {
    client(cell, &["-own"], (port, "/"), rate, connections).map(drop)
}

fn client(cell: &mut Cell, how: &[&str], (port, path): (u16, &str), rate: u64, connections: u64) -> Result<u32> {
    let url = format!("http://127.0.0.1:{port}{path}");
    let (rate, connections) = (rate.to_string(), connections.to_string());
    let load = Program::built("webload").args(how).args(["-url", &url, "-rate", &rate, "-connections", &connections]);
    cell.start(load.on_cpus(LOAD_CPU).in_group("load"))
}
