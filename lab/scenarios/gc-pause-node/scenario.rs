// SPDX-License-Identifier: Apache-2.0
//! A Node service that keeps 95 MB of baskets and may use 136 MB, under wrk: the collector marks them all time and
//! again, in the service's own thread and in four others on the same CPU. The twin may use 4 GB, and keeps a tenth of them: on one CPU
//! a single collection of all takes 300 ms, and for so long nobody gets an answer, however seldom that is.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19162;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "gc-pause-node",
    about: "a Node service with 200,000 baskets and a heap hardly larger than they are",
    expected: Expected::cause(&["runtime-pause"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/gc-pause-node/baskets.js", "baskets.js")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("baskets.js")?;
    // Node gives up where four collections in a row took most of the time and left more than 80 % of the heap full: as
    // little room as goes on for ever.
    let heap_mb = if side == Side::Fault { cell.draw.number("heap_mb", 136, 136..=144) } else { 4096 };
    let heap = format!("--max-old-space-size={heap_mb}");
    let customers = if side == Side::Fault { "200000" } else { "20000" };
    let service = Program::installed("node").args([heap.as_str(), "baskets.js", &PORT.to_string(), customers]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 8, 4..=16);
    full_load(cell, PORT, "/", connections)?;
    // Until what was built at the start has become old.
    cell.stop.sleep(Duration::from_secs(4))?;
    Ok(Aim::Pid(pid))
}
