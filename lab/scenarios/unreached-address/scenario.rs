// SPDX-License-Identifier: Apache-2.0
//! An asyncio service that opens a connection to its store for each request, at the first of two addresses, which nobody reaches:
//! what is sent there is dropped, and after a quarter of a second it tries the other one. No thread is seen to wait for that. The
//! twin's first address is the store's.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19487;
const STORE: u16 = 19488;

/// An address of the loopback network at which everything is dropped.
const UNREACHED: &str = "127.9.9.9";

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "unreached-address",
    about: "an asyncio service that asks its store at an address first that nobody reaches",
    expected: Expected::cause(&["slow-dependency"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/unreached-address/quotes.py", "quotes.py"), THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("quotes.py")?;
    cell.filter(&format!(
        "table ip lab {{
  chain input {{ type filter hook input priority 0; ip daddr {UNREACHED} drop; }}
}}
"
    ))?;
    let store = Program::built("threaded").named("store").args([&STORE.to_string(), "unlocked", "1000"]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let first = if side == Side::Fault { UNREACHED } else { "127.0.0.1" };
    let seconds = (cell.draw.number("patience_ms", 250, 150..=400) as f64 / 1e3).to_string();
    let args = ["quotes.py", &PORT.to_string(), &STORE.to_string(), first, &seconds];
    let pid = cell.start(Program::installed(PYTHON).named("quotes").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 25, 15..=40);
    steady_load(cell, PORT, "/", rate, 24)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
