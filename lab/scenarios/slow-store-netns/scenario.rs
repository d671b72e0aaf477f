// SPDX-License-Identifier: Apache-2.0
//! The slow store once more, in a network namespace of its own behind a pair of virtual interfaces, as two containers on
//! one host: the walk crosses them and ends at the store's timer. The twin's store answers at once.

use anyhow::Result;

use super::slow_store;
use crate::cell::{Cell, FAR};
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
    builds: slow_store::BUILDS,
    folders: &["lab/scenarios/slow-store"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    slow_store::proxy_and_store(cell, side, (PORT, STORE), FAR)
}
