// SPDX-License-Identifier: Apache-2.0
//! A service in Perl that sleeps between taking a connection and starting the process that serves it: that process never waits, and
//! whoever asks waits for its start. The twin starts it at once.

use std::time::Duration;

use anyhow::Result;

use super::{WEBLOAD, reconnecting_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19598;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-accept",
    about: "a service in Perl that sleeps before it starts a process for each connection",
    expected: Expected { syscall: Some("nanosleep"), ..Expected::cause(&["sleep-in-path"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/slow-accept/porter.pl", "porter.pl"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("porter.pl")?;
    let nap_ms = if side == Side::Fault { cell.draw.number("nap_ms", 20, 10..=35) } else { 0 };
    let nap = (nap_ms as f64 / 1e3).to_string();
    let pid = cell.start(Program::installed("perl").args(["porter.pl", &PORT.to_string(), &nap]))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 20, 12..=24);
    reconnecting_load(cell, PORT, rate, cell.draw.number("connections", 6, 4..=8))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
