// SPDX-License-Identifier: Apache-2.0
//! A Node service whose CPU is shared with three busy loops of somebody else. It looks like a quota,
//! except that nothing is throttled. The twin has the CPU to itself.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19031;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "noisy-neighbour",
    about: "a Node service on a CPU that three busy loops use as well",
    expected: Expected::cause(&["run-queue-wait"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/noisy-neighbour/basket.js", "basket.js"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("basket.js")?;
    let service = Program::installed("node").args(["basket.js", &PORT.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    if side == Side::Fault {
        for i in 0..cell.draw.number("neighbours", 3, 2..=5) {
            let neighbour =
                Program::installed("sh").args(["-c", "while :; do :; done"]).named(&format!("neighbour{i}"));
            cell.start(neighbour.on_cpus(SERVICE_CPU).in_group("neighbour"))?;
        }
    }
    let rate = cell.draw.number("rate", 900, 700..=1000);
    let connections = cell.draw.number("connections", 16, 8..=32);
    steady_load(cell, PORT, "/basket", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(Aim::Pid(pid))
}
