// SPDX-License-Identifier: Apache-2.0
//! A search service that compares the question with every vector, norms and all, at each request.
//! The twin answers the same requests at the same rate from an index.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19011;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "hot-code",
    about: "a Go similarity search that computes every norm anew for each request",
    expected: Expected { function: Some("cosine"), ..Expected::cause(&["hot-code"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Go("lab", "./scenarios/hot-code", "similar"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let search = if side == Side::Fault { "naive" } else { "indexed" };
    let listen = format!("127.0.0.1:{PORT}");
    let service = Program::built("similar").args(["-listen", &listen, "-search", search]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 400, 400..=700);
    let connections = cell.draw.number("connections", 16, 8..=32);
    steady_load(cell, PORT, "/similar?item=7", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
