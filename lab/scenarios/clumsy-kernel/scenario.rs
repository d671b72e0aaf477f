// SPDX-License-Identifier: Apache-2.0
//! A Node.js service with a connection for each request, behind a packet filter that tracks connections: the table fills with
//! connections that have long ended, and then the kernel drops each new one. Everybody is idle. The twin's table is large
//! enough; it has as many sockets in TIME_WAIT, which hurt nobody.

use std::time::Duration;

use anyhow::{Result, bail};

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19192;

/// Lets in what belongs to a connection, for which the kernel has to know all of them.
const RULES: &str = "table inet lab {
  chain input { type filter hook input priority 0; policy accept; ct state established,related accept; }
}
";

const MAX: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// How long the table may take to fill.
const FILL_LIMIT: Duration = Duration::from_secs(30);

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "clumsy-kernel",
    about: "a Node.js service with a connection for each request, and a table of connection tracking that fills up",
    expected: Expected::cause(&["conntrack-full"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/accept-queue-node/checkout.js", "checkout.js"), WEBLOAD],
    folders: &["lab/scenarios/accept-queue-node", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("checkout.js")?;
    let entries = cell.draw.number("entries", 1_500, 1_000..=3_000);
    let clients = cell.draw.number("clients", 60, 20..=100);
    cell.filter(RULES)?;
    let service = Program::installed("node").args(["checkout.js", &PORT.to_string(), "511", "0"]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    if side == Side::Fault {
        cell.set_host(MAX, &entries.to_string())?;
    }
    steady_load(cell, PORT, "/", 800, clients)?;
    let stop = cell.stop.clone();
    let number = |text: String| text.trim().parse::<u64>().unwrap_or(0);
    // The twin begins where the other side's table would be full.
    let full = stop.poll(FILL_LIMIT, || Ok(number(cell.read_inside(COUNT)?) >= entries))?;
    if !full {
        bail!("the table has not filled in {} s", FILL_LIMIT.as_secs());
    }
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
