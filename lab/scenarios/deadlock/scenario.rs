// SPDX-License-Identifier: Apache-2.0
//! A C++ bank whose requests lock two accounts in the order in which they name them: sooner or later two wait for each other, and then
//! all others behind them. No wait of theirs ever ends. The twin locks them in one order.

use std::time::Duration;

use anyhow::Result;

use super::{WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19531;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "deadlock",
    about: "a C++ bank that locks two accounts in any order, until two requests wait for each other",
    expected: Expected {
        says: Some("a deadlock"),
        syscall: Some("futex"),
        ..Expected::cause(&["user-lock-contention"])
    },
    twin: Some(NEUTRAL),
    builds: &[BANK, WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

/// The program of this one and of `keeper-stands`.
pub const BANK: Build = Build::Cxx("lab/scenarios/deadlock/bank.cpp", "bank");

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let order = if side == Side::Fault { "unordered" } else { "ordered" };
    let accounts = cell.draw.number("accounts", 3, 2..=3);
    let hold_us = cell.draw.number("hold_us", 200, 150..=300);
    let (port, connections) = (PORT.to_string(), cell.draw.number("connections", 6, 3..=16));
    let args = [port, order.to_string(), accounts.to_string(), hold_us.to_string()];
    let pid = cell.start(Program::built("bank").args(args))?;
    cell.wait_for_port(PORT)?;
    // Few enough that locks that are taken in order are mostly free. Requests of one load come evenly; those of two soon meet.
    steady_load(cell, PORT, "/", 130, connections)?;
    steady_load(cell, PORT, "/", 97, connections)?;
    cell.stop.sleep(Duration::from_secs(4))?;
    Ok(Aim::Pid(pid))
}
