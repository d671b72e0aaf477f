// SPDX-License-Identifier: Apache-2.0
//! A Node service whose clients post header and body in two small writes, on sockets with the default options: the body stands at
//! their end until this host acknowledges the header, which it puts off for 40 ms. The service has nothing to do meanwhile. The
//! clients of the twin send both at once, and some milliseconds apart, as long as that timer too: they are slow, and nothing holds
//! them.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19261;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "header-first",
    about: "a Node service whose clients send header and body in two small writes",
    expected: Expected::cause(&["nagle-delayed-ack"]),
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/header-first/upper.js", "upper.js"),
        Build::Script("lab/scenarios/header-first/post.pl", "post.pl"),
    ],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("upper.js")?;
    cell.bring("post.pl")?;
    let pid = cell.start(Program::installed("node").args(["upper.js", &PORT.to_string()]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let clients = cell.draw.number("clients", 3, 1..=8);
    // A host that has said something within 40 ms takes it for a dialogue, and acknowledges with what it says next.
    let thought = cell.draw.number("thought_ms", 8, 2..=20);
    let pause = match side {
        Side::Fault => 0,
        Side::Twin => cell.draw.number("pause_ms", 15, 8..=60),
    };
    let numbers = [u64::from(PORT), clients, thought, pause].map(|number| number.to_string());
    let args = std::iter::once("post.pl").chain(numbers.iter().map(String::as_str));
    cell.start(Program::installed("perl").named("clients").args(args).on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
