// SPDX-License-Identifier: Apache-2.0
//! A Java service with a thread for each client, whose store has taken its questions for some time and answers none: nobody gets an
//! answer any more, and no wait ends while it is looked at. With few connections to the store most threads wait for one of these.
//! The twin's store answers.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19481;
const STORE: u16 = 19482;
/// Until the store falls silent, and the same for ever.
const SILENT_AFTER: &str = "4";
const NEVER: &str = "100000";

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "silent-store",
    about: "a Java service whose store has fallen silent: all its requests hang",
    expected: Expected::cause(&["slow-dependency"]),
    twin: Some(NEUTRAL),
    builds: &[
        Build::Java("lab/scenarios/small-pool/Bank.java", "bank.jar"),
        Build::Script("lab/scenarios/silent-store/store.js", "silent-store.js"),
        WEBLOAD,
    ],
    folders: &["lab/scenarios/small-pool", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("bank.jar")?;
    cell.bring("silent-store.js")?;
    let silent = if side == Side::Fault { SILENT_AFTER } else { NEVER };
    let store = Program::installed("node").args(["silent-store.js", &STORE.to_string(), silent]).named("store");
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let connections = cell.draw.number("connections", 12, 3..=40).to_string();
    let bank = Program::installed("java").args(["-cp", "bank.jar", "Bank", &PORT.to_string(), &STORE.to_string()]);
    let pid = cell.start(bank.args([connections]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let rate = cell.draw.number("rate", 60, 20..=200);
    steady_load(cell, PORT, "/", rate, 40)?;
    cell.stop.sleep(Duration::from_secs(8))?;
    Ok(Aim::Pid(pid))
}
