// SPDX-License-Identifier: Apache-2.0
//! A Perl application of a few processes behind nginx, which asks it over a Unix socket: most of a request's time its connection
//! stands in that socket's queue. The twin has enough processes, and waits for the store.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19482;
const STORE: u16 = 19483;
/// In the cell's folder, where all of them run: a whole path may be longer than the address of a socket may be.
const SOCKET: &str = "orders.sock";

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "unix-workers",
    about: "a Perl application of a few processes behind nginx, asked over a Unix socket",
    expected: Expected::cause(&["pool-exhausted"]),
    twin: Some(Expected { end: Some("its own timer"), ..Expected::cause(&["slow-dependency"]) }),
    builds: &[Build::Script("lab/scenarios/unix-workers/orders.pl", "orders.pl"), THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("orders.pl")?;
    let delay_us = cell.draw.number("delay_us", 15_000, 10_000..=30_000);
    let few = cell.draw.number("workers", 4, 2..=6);
    let store = Program::built("threaded").named("store");
    let store = store.args([&STORE.to_string(), "unlocked", &delay_us.to_string()]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let workers = if side == Side::Fault { few } else { 64 }.to_string();
    let application = Program::installed("perl").args(["orders.pl", SOCKET, &STORE.to_string(), &workers]);
    let pid = cell.start(application.on_cpus(SERVICE_CPU))?;
    web_server(cell)?;
    // More than so many processes can serve; 64 of them are not half of it.
    let asked_percent = cell.draw.number("asked_percent", 125, 115..=135);
    steady_load(cell, PORT, "/", few * 1_000_000 / delay_us * asked_percent / 100, 24)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}

fn web_server(cell: &mut Cell) -> Result<()> {
    let lines = format!("server {{ listen 127.0.0.1:{PORT}; location / {{ proxy_pass http://unix:{SOCKET}:; }} }}");
    let nginx = Program::nginx(cell, &lines)?;
    cell.start(nginx.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.wait_for_port(PORT)
}
