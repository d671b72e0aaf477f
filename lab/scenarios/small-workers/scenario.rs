// SPDX-License-Identifier: Apache-2.0
//! A Python service whose four threads take a connection each, ask a store that answers after 10 ms, and close. Its 24
//! clients open a connection for each request: most of a request's time it lies in the listener's queue, accepted by
//! nobody. The twin has 64 threads and waits for the store.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, THREADED, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19156;
const STORE: u16 = 19157;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "small-workers",
    about: "a Python service with four threads for 24 clients, each request a connection",
    expected: Expected::cause(&["pool-exhausted"]),
    twin: Some(Expected { end: Some("its own timer"), ..Expected::cause(&["slow-dependency"]) }),
    builds: &[Build::Script("lab/scenarios/small-workers/articles.py", "articles.py"), THREADED, WEBLOAD],
    folders: &["lab/threaded", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("articles.py")?;
    let delay_us = cell.draw.number("delay_us", 10_000, 10_000..=20_000);
    let few = cell.draw.number("threads", 4, 2..=4);
    let store = Program::built("threaded").named("store");
    let store = store.args([&STORE.to_string(), "unlocked", &delay_us.to_string()]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let threads = if side == Side::Fault { few } else { 64 }.to_string();
    let service = Program::installed(PYTHON).args(["articles.py", &PORT.to_string(), &STORE.to_string(), &threads]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // More than so many threads can serve; four of them less than four hundred a second.
    let asked_percent = cell.draw.number("asked_percent", 125, 120..=130);
    steady_load(cell, PORT, "/", few * 1_000_000 / delay_us * asked_percent / 100, 24)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
