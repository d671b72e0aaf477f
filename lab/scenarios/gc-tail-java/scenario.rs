// SPDX-License-Identifier: Apache-2.0
//! The Java service of `gc-pause-java` with little to do: now and then the collector goes through all of its sessions, and the few
//! requests that come then wait for it. The collector's share of the CPU time is small. The twin has a tenth of the sessions.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19481;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "gc-tail-java",
    about: "a Java service at low load whose collector holds a few requests up",
    expected: Expected::cause(&["runtime-pause"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Java("lab/scenarios/gc-pause-java/Sessions.java", "sessions.jar"), WEBLOAD],
    folders: &["lab/scenarios/gc-pause-java", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("sessions.jar")?;
    let collector = ["-XX:+UseSerialGC", "-XX:+UseParallelGC"][cell.draw.number("parallel", 0, 0..=1) as usize];
    // So many that the old generation is collected within any four seconds.
    let users = cell.draw.number("users", 300_000, 300_000..=400_000);
    let users = if side == Side::Fault { users } else { users / 10 };
    let heap_mb = cell.draw.number("heap_mb", 200, 190..=210);
    let service = Program::installed("java").args([collector, &format!("-Xmx{heap_mb}m"), &format!("-Xms{heap_mb}m")]);
    let service = service.args(["-Dsun.net.httpserver.nodelay=true", "-cp", "sessions.jar", "Sessions"]);
    let kilobytes = cell.draw.number("kilobytes", 500, 400..=600);
    let service = service.args([PORT.to_string(), users.to_string(), kilobytes.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 80, 80..=120);
    steady_load(cell, PORT, "/", rate, 8)?;
    // Until the just-in-time compiler has calmed down.
    cell.stop.sleep(Duration::from_secs(8))?;
    Ok(Aim::Pid(pid))
}
