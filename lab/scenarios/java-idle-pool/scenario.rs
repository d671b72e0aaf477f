// SPDX-License-Identifier: Apache-2.0
//! A Java service with two hundred pooled threads, nearly all parked on a lock: idle, not waiting.

use std::time::Duration;

use anyhow::Result;

use super::WEBLOAD;
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19051;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "java-idle-pool",
    about: "a Java web service with 200 idle pool threads under light load",
    expected: Expected::cause(&["healthy"]),
    twin: None,
    builds: &[Build::Java("lab/scenarios/java-idle-pool/Clock.java", "clock.jar"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    cell.bring("clock.jar")?;
    let pid = cell.start(Program::installed("java").args([
        "-Dsun.net.httpserver.nodelay=true",
        "-cp",
        "clock.jar",
        "Clock",
        &PORT.to_string(),
    ]))?;
    cell.wait_for_port(PORT)?;
    let url = format!("http://127.0.0.1:{PORT}/");
    let rate = cell.draw.number("rate", 40, 20..=80).to_string();
    let connections = cell.draw.number("connections", 8, 4..=16).to_string();
    let load = Program::built("webload").args(["-url", &url, "-rate", &rate, "-connections", &connections]);
    cell.start(load.in_group("load"))?;
    // Until the just-in-time compiler has calmed down.
    cell.stop.sleep(Duration::from_secs(4))?;
    Ok(Aim::Pid(pid))
}
