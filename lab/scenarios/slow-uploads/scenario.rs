// SPDX-License-Identifier: Apache-2.0
//! A Java web service that takes photos in a pool of a few threads, and clients on a slow network: each holds a thread until its photo
//! is there, and all others lie unread. The twin has more threads than there are clients.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, WEBLOAD, reconnecting_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19506;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-uploads",
    about: "a Java service whose few threads read from slow clients while others lie unread",
    expected: Expected { says: Some("clients that are slow to send"), ..Expected::cause(&["pool-exhausted"]) },
    twin: Some(NEUTRAL),
    builds: &[
        Build::Java("lab/scenarios/slow-uploads/Photos.java", "photos.jar"),
        Build::Script("lab/scenarios/slow-uploads/phones.py", "phones.py"),
        WEBLOAD,
    ],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("photos.jar")?;
    cell.bring("phones.py")?;
    let threads = cell.draw.number("threads", 4, 3..=12);
    let (port, pool) = (PORT.to_string(), if side == Side::Fault { threads } else { 64 }.to_string());
    let service = Program::installed("java").args(["-cp", "photos.jar", "Photos", &port, &pool]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // Half as many again as there are threads.
    let clients = threads + threads.div_ceil(2);
    // Not so slow that fewer than fifty requests end in a capture: how threads take them is known from so many.
    let (pieces, pause_ms) = (cell.draw.number("pieces", 10, 5..=12), cell.draw.number("pause_ms", 50, 20..=50));
    let numbers = [u64::from(PORT), clients, pieces, pause_ms, 100].map(|number| number.to_string());
    let phones = Program::installed(PYTHON).args(["phones.py".to_string()]).args(numbers);
    cell.start(phones.on_cpus(LOAD_CPU).in_group("load"))?;
    let rate = cell.draw.number("rate", 10, 5..=20);
    reconnecting_load(cell, PORT, rate, 8)?;
    // Until the just-in-time compiler has calmed down.
    cell.stop.sleep(Duration::from_secs(4))?;
    Ok(Aim::Pid(pid))
}
