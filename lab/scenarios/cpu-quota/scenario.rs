// SPDX-License-Identifier: Apache-2.0
//! A service in a cgroup with 30 % of a CPU, asked for work that needs about twice as much. The twin
//! has the same work and no quota.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19021;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "cpu-quota",
    about: "a Go report service in a cgroup that may use 30 % of a CPU and needs more",
    expected: Expected::cause(&["cpu-throttled"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Go("lab", "./scenarios/cpu-quota", "reports"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let listen = format!("127.0.0.1:{PORT}");
    let mut service = Program::built("reports").args(["-listen", &listen]).on_cpus(SERVICE_CPU);
    if side == Side::Fault {
        service = service.with_quota(cell.draw.number("quota_percent", 30, 15..=35));
    }
    cell.start(service)?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 500, 500..=800);
    let connections = cell.draw.number("connections", 16, 8..=32);
    steady_load(cell, PORT, "/report", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Cgroup(cell.group("service")?.path().to_path_buf()))
}
