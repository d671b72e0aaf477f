// SPDX-License-Identifier: Apache-2.0
//! A Node.js service whose loop starts a shell for each request, which waits for a program that takes its time. What is waited
//! for is in processes that live for one request each. The twin's shell starts none.

use anyhow::Result;

use super::WEBLOAD;
use super::shell_out::convert;
use crate::builds::Build;
use crate::cell::Cell;
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19478;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "shell-out-node",
    about: "an event loop whose requests wait for a shell and what it starts, 50 ms each",
    expected: Expected { comm: Some("sleep"), end: Some("its own timer"), ..Expected::cause(&["slow-dependency"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/shell-out-node/convert.js", "convert.js"), WEBLOAD],
    folders: &["lab/scenarios/shell-out", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    convert(cell, side, ("node", "convert.js"), PORT)
}
