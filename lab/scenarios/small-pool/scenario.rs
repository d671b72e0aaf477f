// SPDX-License-Identifier: Apache-2.0
//! A Java service with a thread for each of its 40 clients, which share five connections to a store that answers any
//! number at once, each after 7 ms: they wait for a connection, not for the store. The twin has one for each of them
//! and waits for the store.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19154;
const STORE: u16 = 19155;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "small-pool",
    about: "a Java service whose 40 threads share five connections to a store",
    expected: Expected { syscall: Some("read"), ..Expected::cause(&["pool-exhausted"]) },
    twin: Some(Expected { end: Some("its own timer"), ..Expected::cause(&["slow-dependency"]) }),
    builds: &[Build::Java("lab/scenarios/small-pool/Bank.java", "bank.jar"), THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("bank.jar")?;
    // A store that answers within 5 ms is none that a service waits too long for: the twin must be clear of that.
    let delay_us = cell.draw.number("delay_us", 7000, 6500..=12_000);
    let pool = cell.draw.number("pool", 5, 3..=6);
    let store = Program::built("threaded").named("store");
    let store = store.args([&STORE.to_string(), "unlocked", &delay_us.to_string()]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let connections = if side == Side::Fault { pool } else { 40 }.to_string();
    let bank = Program::installed("java").args(["-cp", "bank.jar", "Bank", &PORT.to_string(), &STORE.to_string()]);
    let pid = cell.start(bank.args([connections]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // More than the pool can carry; five connections 700 a second. The CPU would carry several times that.
    let asked_percent = cell.draw.number("asked_percent", 120, 115..=160);
    steady_load(cell, PORT, "/", pool * 1_000_000 / delay_us * asked_percent / 100, 40)?;
    // Until the just-in-time compiler has calmed down.
    cell.stop.sleep(Duration::from_secs(5))?;
    Ok(Aim::Pid(pid))
}
