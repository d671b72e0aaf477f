// SPDX-License-Identifier: Apache-2.0
//! A Node gate behind TLS whose requests each ask a Python store over TLS, all over connections of their own: handshakes are most of
//! what is said, and no request. The twin's store answers at once.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, WEBLOAD};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::certificate;
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19481;
const STORE: u16 = 19482;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "behind-tls",
    about: "a Node gate behind TLS before a store of 80 ms behind TLS, a connection for each request",
    expected: Expected::cause(&["slow-dependency"]),
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/behind-tls/gate.js", "gate.js"),
        Build::Script("lab/scenarios/fresh-upstream/store.py", "fresh-store.py"),
        WEBLOAD,
    ],
    folders: &["lab/webload", "lab/scenarios/fresh-upstream"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("gate.js")?;
    cell.bring("fresh-store.py")?;
    certificate::write(cell)?;
    let delay = if side == Side::Fault { cell.draw.number("delay_ms", 80, 40..=150) } else { 0 };
    let store = ["fresh-store.py", &STORE.to_string(), &delay.to_string(), "cert.pem", "key.pem"];
    let store = Program::installed(PYTHON).args(store);
    cell.start(store.named("store"))?;
    cell.wait_for_port(STORE)?;
    let gate = Program::installed("node").named("gate").args(["gate.js", &PORT.to_string(), &STORE.to_string()]);
    let pid = cell.start(gate)?;
    cell.wait_for_port(PORT)?;
    let (rate, url) = (cell.draw.number("rate", 40, 20..=60), format!("https://127.0.0.1:{PORT}/"));
    let load = Program::built("webload").args(["-reconnect", "-url", &url, "-rate", &rate.to_string()]);
    cell.start(load.args(["-connections", "16"]).on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
