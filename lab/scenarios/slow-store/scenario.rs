// SPDX-License-Identifier: Apache-2.0
//! A Node proxy in front of a store that answers from a timer of 20 ms. The proxy does next to nothing and is slow; the
//! walk goes into the store and ends at its timer. The twin's store answers at once.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, FAR, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19111;
const STORE: u16 = 19112;

/// What both programs are.
pub(super) const BUILDS: &[Build] = &[
    Build::Script("lab/scenarios/slow-store/proxy.js", "proxy.js"),
    Build::Script("lab/scenarios/slow-store/store.js", "store.js"),
];

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-store",
    about: "a Node proxy before a store that answers from a timer of 20 ms",
    expected: Expected {
        comm: Some("node"),
        syscall: Some("epoll"),
        end: Some("its own timer"),
        ..Expected::cause(&["slow-dependency"])
    },
    twin: Some(NEUTRAL),
    builds: BUILDS,
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    proxy_and_store(cell, side, (PORT, STORE), Ipv4Addr::LOCALHOST)
}

/// Starts a proxy on a port and its store on another of a host, which is this one or the cell's far one.
pub(super) fn proxy_and_store(
    cell: &mut Cell,
    side: Side,
    (port, store_port): (u16, u16),
    host: Ipv4Addr,
) -> Result<Aim> {
    cell.bring("proxy.js")?;
    cell.bring("store.js")?;
    let delay = if side == Side::Fault { cell.draw.number("delay_ms", 20, 10..=80) } else { 0 };
    let store = Program::installed("node")
        .named("store")
        .args(["store.js", &store_port.to_string(), &delay.to_string(), &host.to_string()])
        .on_cpus(LOAD_CPU);
    cell.start(if host == FAR { store.far() } else { store })?;
    cell.wait_for(host, store_port)?;
    let args = ["proxy.js", &port.to_string(), &store_port.to_string(), &host.to_string()];
    let pid = cell.start(Program::installed("node").named("proxy").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(port)?;
    let connections = cell.draw.number("connections", 2, 1..=4);
    full_load(cell, port, "/", connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
