// SPDX-License-Identifier: Apache-2.0
//! nginx before a store in another network namespace, on the way to which packets are lost in both directions, as between two hosts: the
//! store answers at once, and its answers are late. The twin's way loses none. Somebody else in the same network namespace talks over
//! loopback much more than that, so that of all segments hardly any are lost.

use std::time::Duration;

use anyhow::Result;

use super::loss_netns::lose;
use super::{LOAD_CPU, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, FAR, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19513;
const STORE: u16 = 19514;
const CHATTER: u16 = 19515;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "loss-upstream",
    about: "an nginx before a store in another network namespace, and a way there that loses packets",
    expected: Expected::cause(&["packet-loss"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/slow-store/store.js", "store.js"), WEBLOAD],
    folders: &["lab/scenarios/loss-netns", "lab/scenarios/slow-store", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("store.js")?;
    let store = Program::installed("node").named("store").args(["store.js", &STORE.to_string(), "0", &FAR.to_string()]);
    cell.start(store.on_cpus(LOAD_CPU).far())?;
    cell.wait_for(FAR, STORE)?;
    chatter(cell)?;
    if side == Side::Fault {
        let percent = cell.draw.number("percent", 4, 2..=8);
        lose(cell, percent)?;
    }
    let server = format!(
        "upstream store {{ server {FAR}:{STORE}; keepalive 64; }}
server {{ listen {PORT}; location / {{ proxy_pass http://store; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}"
    );
    let service = Program::nginx(cell, &server)?;
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let (rate, connections) = (cell.draw.number("rate", 300, 150..=600), cell.draw.number("connections", 40, 20..=60));
    steady_load(cell, PORT, "/", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}

/// What has nothing to do with the target, and is most of what the counters of its network namespace count.
fn chatter(cell: &mut Cell) -> Result<()> {
    let other = Program::installed("node").named("chatter").args(["store.js", &CHATTER.to_string(), "0"]);
    cell.start(other.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(CHATTER)?;
    let rate = cell.draw.number("chatter", 1500, 500..=2500);
    steady_load(cell, CHATTER, "/", rate, 8)
}
