// SPDX-License-Identifier: Apache-2.0
//! A Java service in which one thread accepts, and a few others take connections from a queue inside and sleep for each
//! request. Their reads never wait, for there is always a connection whose request has come: no thread of theirs is ever seen
//! to wait for a client. The twin does not sleep.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, full_load, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19302;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "queue-workers",
    about: "a Java service whose two workers sleep 20 ms for each connection that they take from a queue inside",
    expected: Expected::cause(&["sleep-in-path"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Java("lab/scenarios/queue-workers/Desk.java", "desk.jar"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("desk.jar")?;
    let clerks = cell.draw.number("clerks", 2, 2..=5);
    let millis = if side == Side::Fault { cell.draw.number("millis", 20, 10..=40) } else { 0 };
    let args = ["-cp", "desk.jar", "Desk", &PORT.to_string(), &clerks.to_string(), &millis.to_string()];
    let pid = cell.start(Program::installed("java").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    match side {
        Side::Fault => full_load(cell, PORT, "/", clerks * 4)?,
        Side::Twin => steady_load(cell, PORT, "/", 100, 8)?,
    }
    // Until the just-in-time compiler has calmed down.
    cell.stop.sleep(Duration::from_secs(4))?;
    Ok(Aim::Pid(pid))
}
