// SPDX-License-Identifier: Apache-2.0
//! A C service that sleeps between two connections, with a backlog of eight: the accept queue is always full, and the kernel
//! drops the handshakes of most clients, which try again after a second. The sleep is the cause, the queue a link. The twin
//! has the same backlog and does not sleep.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19190;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "accept-queue",
    about: "a C service that sleeps 8 ms between two accepts, with a backlog of eight and a connection for each request",
    expected: Expected {
        syscall: Some("nanosleep"),
        also: Some("accept-queue-full"),
        ..Expected::cause(&["sleep-in-path"])
    },
    twin: Some(NEUTRAL),
    builds: &[Build::C("lab/scenarios/accept-queue/tickets.c", "tickets"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let delay = cell.draw.number("delay_us", 8_000, 6_000..=20_000);
    let backlog = cell.draw.number("backlog", 8, 4..=16).to_string();
    let pause = if side == Side::Fault { delay } else { 0 }.to_string();
    let service = Program::built("tickets").args([&PORT.to_string(), &backlog, &pause]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    match side {
        // Half as many again as it can take.
        Side::Fault => steady_load(cell, PORT, "/", 1_500_000 / delay, 48)?,
        // So few at once that no burst of them can fill the queue.
        Side::Twin => steady_load(cell, PORT, "/", 1_500_000 / delay, 4)?,
    }
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
