// SPDX-License-Identifier: Apache-2.0
//! A Node service whose clients ask all the time, until somebody stops them: their connections stay open, and nothing comes any
//! more. The twin is a service that few ask: its silence means nothing.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_client};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19264;

/// What is needed for one.
pub(super) const BUILDS: &[Build] = &[Build::Script("lab/scenarios/stopped/quotes.js", "quotes.js"), WEBLOAD];

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "frozen-clients",
    about: "a Node service whose clients are stopped by a signal while it is looked at",
    expected: Expected::cause(&["traffic-stopped"]),
    twin: Some(NEUTRAL),
    builds: BUILDS,
    folders: &["lab/webload", "lab/scenarios/stopped"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let (pid, load) = asked(cell, PORT, side)?;
    if side == Side::Fault {
        stop_later(cell, load)?;
    }
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}

/// Starts the service and its clients: many requests, or few.
pub(super) fn asked(cell: &mut Cell, port: u16, side: Side) -> Result<(u32, u32)> {
    cell.bring("quotes.js")?;
    let service = Program::installed("node").args(["quotes.js", &port.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(port)?;
    let (rate, connections) = (cell.draw.number("rate", 200, 80..=500), cell.draw.number("connections", 8, 2..=16));
    let load = steady_client(cell, port, "/", if side == Side::Fault { rate } else { 3 }, connections)?;
    Ok((pid, load))
}

/// Stops a process some time after somebody has begun to look, and loaded its probes: of a look of four seconds two slices come before
/// it, and one after it.
pub(super) fn stop_later(cell: &mut Cell, pid: u32) -> Result<()> {
    let observer = cell.group("observer")?.path().join("cgroup.procs");
    let script = format!(
        "until read first < {}; do sleep 0.1; done; sleep 2.9; kill -STOP {pid}; exec sleep 1000",
        observer.display()
    );
    cell.start(Program::installed("sh").named("stopper").args(["-c", &script]).in_group("load")).map(drop)
}
