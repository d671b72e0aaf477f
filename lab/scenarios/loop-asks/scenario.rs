// SPDX-License-Identifier: Apache-2.0
//! A C service with one epoll loop that asks a store for some of its requests, and waits for the answer in a call: meanwhile all
//! others stand. The twin's store answers at once.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19520;
const STORE: u16 = 19521;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "loop-asks",
    about: "a C event loop that waits in a read for a store of 40 ms, for one request in eight",
    expected: Expected { function: Some("answer"), ..Expected::cause(&["event-loop-blocked"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::C("lab/scenarios/loop-asks/quote.c", "quote"), THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let delay_ms = if side == Side::Fault { cell.draw.number("delay_ms", 40, 20..=100) } else { 0 };
    let store = Program::built("threaded").named("store");
    let store = store.args([&STORE.to_string(), "unlocked", &(delay_ms * 1_000).to_string()]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let every = cell.draw.number("every", 8, 8..=20);
    // In a read, in a poll with a timeout before it, or in a loop of its own.
    let how = cell.draw.number("how", 0, 0..=2);
    let numbers = [u64::from(PORT), u64::from(STORE), every, how].map(|number| number.to_string());
    let pid = cell.start(Program::built("quote").args(&numbers).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // The store is asked for some part of the time.
    let asked_percent = cell.draw.number("asked_percent", 45, 40..=60);
    let a_second = if side == Side::Fault { asked_percent * 10 * every / delay_ms } else { 200 };
    steady_load(cell, PORT, "/", a_second.max(20), 16)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
