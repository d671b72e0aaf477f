// SPDX-License-Identifier: Apache-2.0
//! A Python service whose requests stand before a lock of its event loop, which is held over a timer. The kernel sees a loop
//! that waits for its own timer, as any idle one does; but clients wait for their answers, and that shows in their
//! connections. The twin answers at once.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19181;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "hidden-queue",
    about: "an asyncio service whose requests stand before a lock that is held over a timer of 5 ms",
    expected: Expected::cause(&["not-determined"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/hidden-queue/tickets.py", "tickets.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("tickets.py")?;
    let delay = if side == Side::Fault { cell.draw.number("delay_ms", 5, 3..=20) } else { 0 };
    let service = Program::installed(PYTHON).args(["tickets.py", &PORT.to_string(), &delay.to_string()]);
    let pid = cell.start(service.named("tickets").on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // More than can be sold one after the other, so that all connections stand in the queue.
    let connections = cell.draw.number("connections", 16, 8..=32);
    steady_load(cell, PORT, "/", 400, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
