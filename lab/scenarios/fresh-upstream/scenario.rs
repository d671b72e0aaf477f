// SPDX-License-Identifier: Apache-2.0
//! A Node front whose orders ask a store, each over a connection of its own, between many lists that are answered at once. Its one
//! thread hardly waits for the store, because it serves lists meanwhile; but orders do, and only their own times tell. The
//! twin's store answers at once.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19471;
const STORE: u16 = 19472;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "fresh-upstream",
    about: "a Node front of which one request in five asks a store of 80 ms, each over a connection of its own",
    expected: Expected::cause(&["slow-dependency"]),
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/fresh-upstream/front.js", "front.js"),
        Build::Script("lab/scenarios/fresh-upstream/store.py", "fresh-store.py"),
        WEBLOAD,
    ],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("front.js")?;
    cell.bring("fresh-store.py")?;
    let delay = if side == Side::Fault { cell.draw.number("delay_ms", 80, 30..=150) } else { 0 };
    let store = Program::installed(PYTHON).args(["fresh-store.py", &STORE.to_string(), &delay.to_string()]);
    cell.start(store.named("store"))?;
    cell.wait_for_port(STORE)?;
    let args = ["front.js", &PORT.to_string(), &STORE.to_string()];
    let pid = cell.start(Program::installed("node").named("front").args(args))?;
    cell.wait_for_port(PORT)?;
    let (lists, orders) = (cell.draw.number("lists", 150, 60..=300), cell.draw.number("orders", 40, 20..=60));
    steady_load(cell, PORT, "/list", lists, 4)?;
    // At 150 ms each, 60 a second need nine connections.
    steady_load(cell, PORT, "/order", orders, 16)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
