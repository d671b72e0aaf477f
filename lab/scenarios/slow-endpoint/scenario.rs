// SPDX-License-Identifier: Apache-2.0
//! A Python shop of which one kind of request is slow: reports sleep, items come at once. The labels say which. The twin's
//! reports come at once too.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, NONE_APART, Scenario, Side};

const PORT: u16 = 19461;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-endpoint",
    about: "a threaded Python service whose reports sleep 40 ms, while its items come at once",
    expected: Expected { slow: Some("GET /reports/*"), ..Expected::cause(&["sleep-in-path"]) },
    twin: Some(Expected { slow: Some(NONE_APART), ..NEUTRAL }),
    builds: &[Build::Script("lab/scenarios/slow-endpoint/shop.py", "shop.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("shop.py")?;
    let sleep_ms = if side == Side::Fault { cell.draw.number("sleep_ms", 40, 25..=80) } else { 0 };
    let sleep = (sleep_ms as f64 / 1e3).to_string();
    let pid = cell.start(Program::installed(PYTHON).args(["shop.py", &PORT.to_string(), &sleep]))?;
    cell.wait_for_port(PORT)?;
    let (items, reports) = (cell.draw.number("items", 80, 60..=120), cell.draw.number("reports", 15, 10..=30));
    steady_load(cell, PORT, "/items/4711?colour=red", items, 4)?;
    steady_load(cell, PORT, "/reports/2024-11-24?user=17", reports, 3)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
