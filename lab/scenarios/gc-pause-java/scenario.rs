// SPDX-License-Identifier: Apache-2.0
//! A Java service with 81 MB of sessions in a heap of 96 MB, under wrk: the collector goes through all of them every
//! few hundred requests, and everybody waits for it. The twin's heap has 1 GB.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19161;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "gc-pause-java",
    about: "a Java service with 200,000 sessions and a heap hardly larger than they are",
    expected: Expected::cause(&["runtime-pause"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Java("lab/scenarios/gc-pause-java/Sessions.java", "sessions.jar")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("sessions.jar")?;
    let heap_mb = if side == Side::Fault { cell.draw.number("heap_mb", 96, 96..=104) } else { 1024 };
    // The collector that Java takes by itself where it has one CPU; it runs in the `VM Thread`. Without `nodelay`, each
    // answer would wait for the client's delayed ACK.
    let service = Program::installed("java").args([
        "-XX:+UseSerialGC",
        &format!("-Xmx{heap_mb}m"),
        "-Dsun.net.httpserver.nodelay=true",
    ]);
    let service = service.args(["-cp", "sessions.jar", "Sessions", &PORT.to_string(), "200000"]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 8, 4..=16);
    full_load(cell, PORT, "/", connections)?;
    // Until the just-in-time compiler has calmed down.
    cell.stop.sleep(Duration::from_secs(8))?;
    Ok(Aim::Pid(pid))
}
