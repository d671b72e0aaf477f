// SPDX-License-Identifier: Apache-2.0
//! A Python service that looks a name up in each request. The first name server of its list never answers, so it waits
//! a second until it asks the other one. In the twin both answer.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19158;
/// The first one may never answer.
pub(super) const NAME_SERVERS: [&str; 2] = ["127.0.0.1", "127.0.0.2"];

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "dns-stall",
    about: "a Python service that looks names up, whose first name server is silent",
    expected: Expected { syscall: Some("poll"), ..Expected::cause(&["slow-dns"]) },
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/dns-stall/names.py", "names.py"),
        Build::Script("lab/scenarios/dns-stall/stock.py", "stock.py"),
        WEBLOAD,
    ],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("stock.py")?;
    let [first, second] = NAME_SERVERS;
    let list = format!("nameserver {first}\nnameserver {second}\noptions timeout:1 attempts:1\n");
    start_names(cell, side == Side::Fault)?;
    let pid = start_asking(cell, &list, &format!("{PYTHON} stock.py {PORT}"))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 100, 60..=150);
    let connections = cell.draw.number("connections", 16, 8..=24);
    steady_load(cell, PORT, "/", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(Aim::Pid(pid))
}

/// Starts the name servers.
pub(super) fn start_names(cell: &mut Cell, first_is_silent: bool) -> Result<()> {
    cell.bring("names.py")?;
    let [first, second] = NAME_SERVERS;
    let manner = if first_is_silent { "silent" } else { "answering" };
    let names = Program::installed(PYTHON).named("names").args(["names.py", first, second, manner]);
    cell.start(names.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(53)
}

/// Starts a service with a list of name servers of its own. That is at a fixed place: a mount namespace of the service's has ours there.
/// The process stays the same.
pub(super) fn start_asking(cell: &mut Cell, list: &str, command: &str) -> Result<u32> {
    cell.write("resolv.conf", list)?;
    let mounted = format!("mount --bind resolv.conf /etc/resolv.conf && exec {command}");
    let service = Program::installed("unshare").named("asks").args(["--mount", "sh", "-c", &mounted]);
    cell.start(service.on_cpus(SERVICE_CPU))
}
