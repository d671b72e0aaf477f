// SPDX-License-Identifier: Apache-2.0
//! The slow store once more, in a network namespace of its own behind a pair of virtual interfaces, as two containers on
//! one host: the walk crosses them and ends at the store's timer. The twin's store answers at once.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, FAR, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19173;
const STORE: u16 = 19174;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-store-netns",
    about: "the same proxy and store in two network namespaces",
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
    folders: &["lab/scenarios/slow-store"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("proxy.js")?;
    cell.bring("store.js")?;
    let delay = if side == Side::Fault { "20" } else { "0" };
    let far = FAR.to_string();
    let store = Program::installed("node").named("store").args(["store.js", &STORE.to_string(), delay, &far]);
    cell.start(store.on_cpus(LOAD_CPU).far())?;
    cell.wait_for(FAR, STORE)?;
    let proxy = Program::installed("node").named("proxy");
    let pid = cell.start(proxy.args(["proxy.js", &PORT.to_string(), &STORE.to_string(), &far]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let url = format!("http://127.0.0.1:{PORT}/");
    let load = Program::installed("wrk").args(["-t1", "-c2", "-d300s", &url]);
    cell.start(load.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
