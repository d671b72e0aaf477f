// SPDX-License-Identifier: Apache-2.0
//! Perl processes that ask Redis in two small writes: the second stands in their own send queue until Redis' host
//! acknowledges the first, which it puts off for 40 ms. Redis cannot answer what it does not have, and is not to blame. The
//! twin asks in one write.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19241;
const STORE: u16 = 19242;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "nagle-held",
    about: "Perl processes whose questions to Redis go out in two small writes",
    expected: Expected { comm: Some("perl"), ..Expected::cause(&["nagle-delayed-ack"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/nagle-held/teller.pl", "teller.pl")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("teller.pl")?;
    let redis = Program::installed("redis-server").args(["--port", &STORE.to_string(), "--bind", "127.0.0.1"]);
    let redis = redis.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
    cell.start(redis.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(STORE)?;
    let processes = cell.draw.number("processes", 4, 2..=8);
    let writes = if side == Side::Fault { "2" } else { "1" };
    let args = ["teller.pl", &PORT.to_string(), &STORE.to_string(), &processes.to_string(), writes];
    let pid = cell.start(Program::installed("perl").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    full_load(cell, PORT, "/", processes)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
