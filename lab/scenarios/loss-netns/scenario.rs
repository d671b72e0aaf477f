// SPDX-License-Identifier: Apache-2.0
//! nginx with a connection for each request, whose clients are in another network namespace, as a container's: there the packet filter
//! loses one packet in fifty of what comes and goes. Here nothing is dropped, and the verdict says so. The twin's loses none.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD};
use crate::cell::{Cell, NEAR, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19498;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "loss-netns",
    about: "an nginx whose clients' network namespace loses 2 % of all packets",
    expected: Expected { says: Some("lost outside of its network namespace"), ..Expected::cause(&["packet-loss"]) },
    twin: Some(NEUTRAL),
    builds: &[WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let server = format!("keepalive_timeout 0; server {{ listen {PORT}; location / {{ return 200 \"priced\"; }} }}");
    if side == Side::Fault {
        let percent = cell.draw.number("percent", 2, 2..=6);
        lose(cell, percent)?;
    }
    let service = Program::nginx(cell, &server)?;
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let url = format!("http://{NEAR}:{PORT}/");
    let load = Program::built("webload").args(["-url", &url, "-rate", "300", "-connections", "40"]);
    cell.start(load.far().in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}

/// Loses so many packets of a hundred that come to the far network namespace or leave it.
pub(super) fn lose(cell: &mut Cell, percent: u64) -> Result<()> {
    let chain = |hook: &str| {
        format!("chain {hook} {{ type filter hook {hook} priority -300; numgen random mod 100 < {percent} drop; }}\n")
    };
    cell.filter_far(&format!("table inet lab {{\n{}{}}}\n", chain("prerouting"), chain("output")))
}
