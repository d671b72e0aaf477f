// SPDX-License-Identifier: Apache-2.0
//! The server of remote calls once more, with its client in another network namespace behind a pair of virtual interfaces,
//! as two containers on one host. The twin answers in one write, on sockets with the same default options.

use anyhow::Result;

use super::alvin;
use crate::cell::{Cell, NEAR};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19252;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "alvin-netns",
    about: "the same server with its client in another network namespace",
    expected: Expected { comm: Some("python3"), ..Expected::cause(&["nagle-delayed-ack"]) },
    twin: Some(NEUTRAL),
    builds: alvin::BUILDS,
    folders: &["lab/scenarios/alvin"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let writes = if side == Side::Fault { "2" } else { "1" };
    alvin::calls(cell, PORT, &[writes, "0"], NEAR)
}
