// SPDX-License-Identifier: Apache-2.0
//! A hand-written HTTP service in Python that does not know `Expect: 100-continue`: curl asks with it whether it may send a large file,
//! waits for a second, and sends it all the same. The twin answers.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19509;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "expect-continue",
    about: "a Python service that lets curl wait in vain for leave to send a file",
    expected: Expected { says: Some("as curl does for `100 Continue`"), ..Expected::cause(&["not-determined"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/expect-continue/store.py", "store.py")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("store.py")?;
    let (port, mode) = (PORT.to_string(), if side == Side::Fault { "silent" } else { "answers" });
    let pid = cell.start(Program::installed(PYTHON).args(["store.py", &port, mode]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let (clients, kilobytes) =
        (cell.draw.number("clients", 6, 4..=12), cell.draw.number("kilobytes", 1500, 1100..=4000));
    let send = format!(
        "head -c {kilobytes}000 /dev/zero > file; \
         while :; do curl -s -H 'Expect: 100-continue' -T file http://127.0.0.1:{PORT}/; sleep 0.2; done > answers"
    );
    for _ in 0..clients {
        cell.start(Program::installed("sh").args(["-c", &send]).on_cpus(LOAD_CPU).in_group("load"))?;
    }
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(Aim::Pid(pid))
}
