// SPDX-License-Identifier: Apache-2.0
//! A C++ bank whose background thread asks for rates with the one account locked, of somebody who never answers: all requests stand before
//! that lock, and whoever has it in a read that does not end. The twin asks without the lock.

use std::time::Duration;

use anyhow::Result;

use super::deadlock::BANK;
use super::{WEBLOAD, steady_load};
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19532;
const RATES_PORT: u16 = 19533;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "keeper-stands",
    about: "a C++ bank that asks somebody silent for rates while it holds the mutex that all requests need",
    expected: Expected {
        says: Some("before a mutex that"),
        syscall: Some("read"),
        ..Expected::cause(&["user-lock-contention"])
    },
    twin: Some(NEUTRAL),
    builds: &[BANK, WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let when = if side == Side::Fault { "locked" } else { "unlocked" };
    cell.start(Program::built("bank").named("rates").args([&RATES_PORT.to_string(), "mute"]))?;
    cell.wait_for_port(RATES_PORT)?;
    let after_ms = cell.draw.number("after_ms", 1500, 500..=3000);
    let args = [PORT.to_string(), when.to_string(), RATES_PORT.to_string(), after_ms.to_string()];
    let pid = cell.start(Program::built("bank").args(args))?;
    cell.wait_for_port(PORT)?;
    let (rate, connections) = (cell.draw.number("rate", 80, 40..=200), cell.draw.number("connections", 10, 5..=24));
    steady_load(cell, PORT, "/", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
