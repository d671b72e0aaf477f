// SPDX-License-Identifier: Apache-2.0
//! A prefork service in Perl whose workers have a listener each (SO_REUSEPORT), beside a helper that has kept one: its part of the clients
//! is never taken, and all others are answered at once. In the twin the helper has closed it.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, WEBLOAD};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19593;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "left-listener",
    about: "a prefork Perl service, one of whose listeners nobody accepts from",
    expected: Expected { says: Some("and does not accept from"), ..Expected::cause(&["not-determined"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/left-listener/depots.pl", "depots.pl"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("depots.pl")?;
    let mode = if side == Side::Fault { "keep" } else { "close" };
    let workers = cell.draw.number("workers", 3, 1..=6).to_string();
    let service = Program::installed("perl").args(["depots.pl", &PORT.to_string(), &workers, mode]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let (url, rate) = (format!("http://127.0.0.1:{PORT}/"), cell.draw.number("rate", 120, 60..=250).to_string());
    // Whoever waits in vain gives up, and comes again.
    let load = Program::built("webload").args(["-reconnect", "-timeout", "2s", "-connections", "600"]);
    cell.start(load.args(["-url", &url, "-rate", &rate]).on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
