// SPDX-License-Identifier: Apache-2.0
//! The server of remote calls asks a store that takes its time, and both say all in one write. The round trips that the
//! kernel smoothes are as long as with held bytes, because acknowledgements travel with late answers; nothing is held. The
//! twin's store answers at once.

use std::net::Ipv4Addr;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, alvin};
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19253;
const STORE: u16 = 19254;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "alvin-slow-store",
    about: "the same server before a slow store, without TCP_NODELAY and with nothing held",
    expected: Expected::cause(&["slow-dependency"]),
    twin: Some(NEUTRAL),
    builds: alvin::BUILDS,
    folders: &["lab/scenarios/alvin"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("rpc.py")?;
    let delay = if side == Side::Fault { cell.draw.number("delay_ms", 35, 20..=60) } else { 0 };
    let args = ["rpc.py", "store", &STORE.to_string(), &delay.to_string()];
    cell.start(Program::installed(PYTHON).named("store").args(args).on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    alvin::calls(cell, PORT, &["1", "0", &STORE.to_string()], Ipv4Addr::LOCALHOST)
}
