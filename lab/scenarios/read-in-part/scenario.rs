// SPDX-License-Identifier: Apache-2.0
//! A Python loop over edge-triggered epoll that reads one question whenever it is told of bytes: what came together with it lies
//! unread until more comes, although the loop has nothing to do. The twin reads until nothing is left.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19496;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "read-in-part",
    about: "a Python loop over edge-triggered epoll that leaves questions unread",
    expected: Expected { says: Some("requests at a time lie unread"), ..Expected::cause(&["not-determined"]) },
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/read-in-part/gauges.py", "gauges.py"),
        Build::Script("lab/scenarios/read-in-part/ask.py", "ask.py"),
    ],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("gauges.py")?;
    cell.bring("ask.py")?;
    let reads = if side == Side::Fault { "once" } else { "all" };
    let service = Program::installed(PYTHON).args(["gauges.py", &PORT.to_string(), reads]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let (connections, questions) =
        (cell.draw.number("connections", 8, 4..=20), cell.draw.number("questions", 3, 2..=5));
    let pause_ms = cell.draw.number("pause_ms", 300, 150..=600);
    let ask = [u64::from(PORT), connections, questions, pause_ms].map(|number| number.to_string());
    cell.start(Program::installed(PYTHON).args(["ask.py".to_string()]).args(ask).on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
