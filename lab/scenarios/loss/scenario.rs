// SPDX-License-Identifier: Apache-2.0
//! A Node.js service with a connection for each request, on a network that loses one packet in fifty, whatever is in it. The
//! twin's loses none.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19194;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "loss",
    about: "a Node.js service with a connection for each request, and a network that loses 2 % of all packets",
    expected: Expected { says: Some("dropped on this host, NETFILTER_DROP"), ..Expected::cause(&["packet-loss"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/accept-queue-node/checkout.js", "checkout.js"), WEBLOAD],
    folders: &["lab/scenarios/accept-queue-node", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("checkout.js")?;
    let service = Program::installed("node").args(["checkout.js", &PORT.to_string(), "511", "0"]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    if side == Side::Fault {
        let percent = cell.draw.number("percent", 2, 2..=6);
        cell.filter(&format!(
            "table inet lab {{
  chain before {{ type filter hook prerouting priority -300; numgen random mod 100 < {percent} drop; }}
}}
"
        ))?;
    }
    steady_load(cell, PORT, "/", 300, 40)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
