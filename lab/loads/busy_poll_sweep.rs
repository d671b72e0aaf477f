// SPDX-License-Identifier: Apache-2.0
//! A service whose CPU time does not follow its load, for it looks for work all the time. The twin waits for it.

use std::time::Duration;

use anyhow::Result;

use super::{Given, LoadScenario, Truth};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Side;

const PORT: u16 = 19506;

/// The load.
pub static SCENARIO: LoadScenario = LoadScenario {
    name: "busy-poll-sweep",
    about: "a sweep over a service whose CPU time does not follow its load",
    builds: &[Build::Go("lab", "./scenarios/spin-select", "turnstile")],
    has_twin: true,
    stage,
};

fn stage(cell: &mut Cell, _: &Paths, side: Side) -> Result<Given> {
    let spin = if side == Side::Fault { "-spin=true" } else { "-spin=false" };
    let service = Program::built("turnstile").args(["-listen", &format!("127.0.0.1:{PORT}"), spin]);
    let pid = cell.start(service)?;
    cell.wait_for_port(PORT)?;
    let floor: &[&str] = &["cpu-floor"];
    let truth = match side {
        Side::Fault => Truth { has: floor, service: Some("hot-code"), ..Truth::default() },
        Side::Twin => Truth { has_not: floor, ..Truth::default() },
    };
    let from = cell.draw.number("from", 20, 10..=40);
    let args = format!("http://127.0.0.1:{PORT}/ --sweep {from}..{} --for 3s --diagnose={pid}", from * 8);
    Ok(Given::new(&args, Duration::from_secs(120), truth))
}
