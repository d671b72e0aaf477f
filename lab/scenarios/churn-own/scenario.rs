// SPDX-License-Identifier: Apache-2.0
//! An nginx that passes each request on to another one over a connection of its own, as fast as its clients can: a good part of its
//! CPU time goes to making and closing them. The twin keeps them.

use std::time::Duration;

use anyhow::Result;

use super::churn::nginx;
use super::{LOAD_CPU, SERVICE_CPU, WEBLOAD, full_load, steady_load};
use crate::cell::Cell;
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19266;
const STORE: u16 = 19267;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "churn-own",
    about: "an nginx that passes each request on over a connection of its own, as fast as its clients can",
    expected: Expected::cause(&["connection-churn"]),
    twin: Some(NEUTRAL),
    builds: &[WEBLOAD],
    folders: &["lab/webload", "lab/scenarios/churn"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    nginx(cell, "store", (STORE, LOAD_CPU), "", "return 200 \"here\\n\";")?;
    let kept = match side {
        Side::Fault => "",
        Side::Twin => "keepalive 64;",
    };
    let upstream = format!("upstream store {{ server 127.0.0.1:{STORE}; {kept} }}");
    let pass = "location / { proxy_pass http://store; proxy_http_version 1.1; proxy_set_header Connection \"\"; }";
    nginx(cell, "front", (PORT, SERVICE_CPU), &upstream, pass)?;
    let connections = cell.draw.number("connections", 32, 16..=64);
    match side {
        Side::Fault => full_load(cell, PORT, "/", connections)?,
        Side::Twin => steady_load(cell, PORT, "/", 300, 8)?,
    }
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Port(PORT))
}
