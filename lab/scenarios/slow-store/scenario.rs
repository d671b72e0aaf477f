// SPDX-License-Identifier: Apache-2.0
//! A Node proxy in front of a store that answers from a timer of 20 ms. The proxy does next to nothing and is slow; the
//! walk goes into the store and ends at its timer. The twin's store answers at once.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19111;
const STORE: u16 = 19112;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-store",
    about: "a Node proxy before a store that answers from a timer of 20 ms",
    expected: Expected {
        comm: Some("node"),
        syscall: Some("epoll"),
        end: Some("its own timer"),
        ..Expected::cause(&["slow-dependency"])
    },
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/slow-store/proxy.js", "proxy.js"),
        Build::Script("lab/scenarios/slow-store/store.js", "store.js"),
    ],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("proxy.js")?;
    cell.bring("store.js")?;
    let delay = if side == Side::Fault { "20" } else { "0" };
    cell.start(
        Program::installed("node").named("store").args(["store.js", &STORE.to_string(), delay]).on_cpus(LOAD_CPU),
    )?;
    cell.wait_for_port(STORE)?;
    let proxy = Program::installed("node").named("proxy");
    let pid = cell.start(proxy.args(["proxy.js", &PORT.to_string(), &STORE.to_string()]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let url = format!("http://127.0.0.1:{PORT}/");
    let load = Program::installed("wrk").args(["-t1", "-c2", "-d300s", &url]);
    cell.start(load.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
