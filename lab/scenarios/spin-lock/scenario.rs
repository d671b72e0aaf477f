// SPDX-License-Identifier: Apache-2.0
//! A threaded Rust service whose threads spin before a lock: while its holder has no CPU, all others burn theirs, so that more CPUs or
//! threads make it worse. The twin blocks, at a load that one CPU can bear.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, full_load, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19165;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "spin-lock",
    about: "a threaded Rust service that spins before a lock",
    expected: Expected { function: Some("SpinLock"), ..Expected::cause(&["hot-code"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Rust("lab/scenarios/spin-lock/auction.rs", "auction"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let mode = if side == Side::Fault { "spin" } else { "block" };
    // A holder is found without a CPU only if it computes for longer than its turn: with a third of that, most time is the work itself.
    let rounds = cell.draw.number("rounds", 3_000_000, 2_500_000..=5_000_000).to_string();
    let args = [&PORT.to_string(), mode, rounds.as_str()];
    let pid = cell.start(Program::built("auction").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    match side {
        Side::Fault => full_load(cell, PORT, "/", cell.draw.number("connections", 12, 6..=24))?,
        Side::Twin => steady_load(cell, PORT, "/", cell.draw.number("rate", 20, 5..=40), 4)?,
    }
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
