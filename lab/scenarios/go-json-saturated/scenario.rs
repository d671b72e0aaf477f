// SPDX-License-Identifier: Apache-2.0
//! A Go service at its limit with honest work: most of its time is below encoding/json, but no single
//! function holds it. Accusing one would be a bluff.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19081;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "go-json-saturated",
    about: "a Go JSON service at full speed, its work spread over many functions",
    expected: Expected::cause(&["at-capacity"]),
    twin: None,
    builds: &[
        Build::Go("lab", "./scenarios/go-json-saturated", "orders"),
        Build::Script("lab/scenarios/go-json-saturated/order.lua", "order.lua"),
    ],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    let listen = format!("127.0.0.1:{PORT}");
    let pid = cell.start(Program::built("orders").args(["-listen", &listen]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    cell.bring("order.lua")?;
    let url = format!("http://127.0.0.1:{PORT}/order");
    let connections = format!("-c{}", cell.draw.number("connections", 32, 16..=64));
    let load = Program::installed("wrk").args(["-t1", &connections, "-d300s", "-s", "order.lua", &url]);
    cell.start(load.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
