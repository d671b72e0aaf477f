// SPDX-License-Identifier: Apache-2.0
//! A Node service that somebody stops while its clients go on asking: what they send lies unread, and it is not the traffic that
//! stopped. Who holds it is no cause that has a name; the time stands on a line of its own. The twin is a service that few ask.

use std::time::Duration;

use anyhow::Result;

use super::frozen_clients::{BUILDS, asked, stop_later};
use crate::cell::Cell;
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19265;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "frozen-service",
    about: "a Node service that is stopped by a signal while its clients go on asking",
    expected: Expected { line: Some("stopped"), ..Expected::cause(&["not-determined"]) },
    twin: Some(NEUTRAL),
    builds: BUILDS,
    folders: &["lab/webload", "lab/scenarios/stopped", "lab/scenarios/frozen-clients"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let (pid, _) = asked(cell, PORT, side)?;
    if side == Side::Fault {
        stop_later(cell, pid)?;
    }
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
