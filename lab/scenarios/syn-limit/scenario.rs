// SPDX-License-Identifier: Apache-2.0
//! A Node.js service whose host takes only so many new connections a second: the packet filter drops the other SYNs, whose clients
//! try again after a second. The service never sees them, and answers the others at once. The twin's filter drops none.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19541;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "syn-limit",
    about: "a Node.js service with a connection for each request, on a host whose packet filter takes few new ones a second",
    expected: Expected {
        says: Some("were dropped on this host before they came to it, by its packet filter"),
        ..Expected::cause(&["not-determined"])
    },
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/accept-queue-node/checkout.js", "checkout.js"),
        Build::Script("lab/scenarios/no-route-back/knock.py", "knock.py"),
    ],
    folders: &["lab/scenarios/accept-queue-node", "lab/scenarios/no-route-back"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("checkout.js")?;
    cell.bring("knock.py")?;
    let service = Program::installed("node").args(["checkout.js", &PORT.to_string(), "511", "0"]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let clients = cell.draw.number("clients", 16, 8..=32);
    // Each asks some nine times a second.
    let taken = clients * cell.draw.number("taken", 4, 2..=6);
    if side == Side::Fault {
        cell.filter(&format!(
            "table inet lab {{
  chain input {{
    type filter hook input priority 0;
    tcp dport {PORT} tcp flags & (syn | ack) == syn limit rate over {taken}/second burst 5 packets drop
  }}
}}
"
        ))?;
    }
    let args = ["knock.py", "127.0.0.1", &PORT.to_string(), "127.0.0.1", &clients.to_string()];
    cell.start(Program::installed(PYTHON).named("clients").args(args).on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
