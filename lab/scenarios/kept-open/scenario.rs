// SPDX-License-Identifier: Apache-2.0
//! A prefork service in Perl whose workers serve one connection each until its client closes it, and as many clients that asked once
//! and keep theirs: all others stand in the accept queue. The twin's workers close after each answer.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, WEBLOAD, reconnecting_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19497;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "kept-open",
    about: "a prefork service in Perl whose workers idle clients hold by connections that they keep open",
    expected: Expected { says: Some("stand in the accept queue"), ..Expected::cause(&["pool-exhausted"]) },
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/kept-open/desk.pl", "desk.pl"),
        Build::Script("lab/scenarios/kept-open/hold.py", "hold.py"),
        WEBLOAD,
    ],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("desk.pl")?;
    cell.bring("hold.py")?;
    let workers = cell.draw.number("workers", 4, 2..=8).to_string();
    let port = PORT.to_string();
    let mode = if side == Side::Fault { "keeps" } else { "closes" };
    let pid = cell.start(Program::installed("perl").args(["desk.pl", &port, &workers, mode]))?;
    cell.wait_for_port(PORT)?;
    cell.start(Program::installed(PYTHON).args(["hold.py", &port, &workers]).on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(1))?;
    let rate = cell.draw.number("rate", 40, 20..=80);
    reconnecting_load(cell, PORT, rate, 8)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
