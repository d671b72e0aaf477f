// SPDX-License-Identifier: Apache-2.0
//! A Perl service whose threads give what clients ask to one thread, which asks a store for one after the other: requests stand in line
//! before that thread, and the store answers as quickly as ever. The twin has one for each client, and waits for the store.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, THREADED, WEBLOAD, own_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19599;
const STORE: u16 = 19600;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "one-clerk",
    about: "a Perl service whose threads hand on to one thread that asks a store",
    expected: Expected { says: Some("requests queue inside it"), ..Expected::cause(&["pool-exhausted"]) },
    twin: Some(Expected { end: Some("its own timer"), ..Expected::cause(&["slow-dependency"]) }),
    builds: &[Build::Script("lab/scenarios/one-clerk/office.pl", "office.pl"), THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("office.pl")?;
    let delay_us = cell.draw.number("delay_us", 9000, 7000..=15_000);
    let store = Program::built("threaded").named("store");
    let store = store.args([&STORE.to_string(), "unlocked", &delay_us.to_string()]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let clients = cell.draw.number("clients", 10, 6..=16);
    let clerks = if side == Side::Fault { 1 } else { clients };
    let office = Program::installed("perl").args(["office.pl", &PORT.to_string(), &STORE.to_string()]);
    let pid = cell.start(office.args([clients.to_string(), clerks.to_string()]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // More than one thread can ask.
    let asked_percent = cell.draw.number("asked_percent", 125, 115..=160);
    own_load(cell, PORT, 1_000_000 / delay_us * asked_percent / 100, clients)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
