// SPDX-License-Identifier: Apache-2.0
//! A prefork service in Perl whose workers crash in the middle of a request now and then; their parent starts new ones, and all others
//! are answered quickly. Workers of the twin end of themselves after as many requests.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, reconnecting_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19503;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "crashing-workers",
    about: "a prefork Perl service whose workers crash now and then",
    expected: Expected { says: Some("crashed"), ..Expected::cause(&["not-determined"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/crashing-workers/workers.pl", "workers.pl"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("workers.pl")?;
    let mode = if side == Side::Fault { "crash" } else { "leave" };
    let each = cell.draw.number("requests", 30, 10..=60).to_string();
    let service = Program::installed("perl").args(["workers.pl", &PORT.to_string(), &each, mode]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 200, 150..=300);
    reconnecting_load(cell, PORT, rate, 16)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
