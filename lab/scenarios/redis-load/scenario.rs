// SPDX-License-Identifier: Apache-2.0
//! Redis under its own benchmark: one thread, mostly kernel time for small messages, all of it work.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU};
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, NEUTRAL, Scenario, Side};

const PORT: u16 = 19061;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "redis-load",
    about: "Redis under redis-benchmark with 50 clients",
    expected: NEUTRAL,
    twin: None,
    builds: &[],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    let port = PORT.to_string();
    let redis = Program::installed("redis-server").args(["--port", &port, "--bind", "127.0.0.1"]);
    let redis = redis.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
    let pid = cell.start(redis.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let clients = cell.draw.number("clients", 50, 20..=100).to_string();
    let load =
        Program::installed("redis-benchmark").args(["-p", &port, "-c", &clients, "-t", "set,get", "-r", "100000"]);
    let load = load.args(["-n", "1000000", "-l", "-q"]);
    cell.start(load.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
