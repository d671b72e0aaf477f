// SPDX-License-Identifier: Apache-2.0
//! A Node.js service that some clients reach from a network to which it knows no way back: their handshakes are dropped, while
//! all others are served. The twin's clients come from an address to which there is one.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, FAR, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19195;

/// The end of the second network at which the service is.
const NEAR: &str = "10.203.0.1";

/// A network that nobody has told the service of.
const ELSEWHERE: &str = "10.99.0.1";

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "no-route-back",
    about: "a Node.js service, some of whose clients come from a network to which no route leads back",
    expected: Expected::cause(&["no-return-path"]),
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/slow-store/store.js", "store.js"),
        Build::Script("lab/scenarios/no-route-back/knock.py", "knock.py"),
        WEBLOAD,
    ],
    folders: &["lab/scenarios/slow-store", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("store.js")?;
    cell.bring("knock.py")?;
    let service = Program::installed("node").args(["store.js", &PORT.to_string(), "0", "0.0.0.0"]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    steady_load(cell, PORT, "/", 100, 8)?;
    let address = Program::installed("ip").args(["addr", "add", &format!("{ELSEWHERE}/32"), "dev", "lo"]);
    let address = cell.start(address.far())?;
    cell.finish(address, Duration::from_secs(10))?;
    // What comes from there is not even looked at where the kernel checks ways back itself.
    for name in ["all", "near"] {
        cell.write_inside(&format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "0")?;
    }
    let source = if side == Side::Fault { ELSEWHERE.to_string() } else { FAR.to_string() };
    let clients = cell.draw.number("clients", 30, 20..=60).to_string();
    let knock = Program::installed(PYTHON).args(["knock.py", NEAR, &PORT.to_string(), &source, &clients]);
    cell.start(knock.far().in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
