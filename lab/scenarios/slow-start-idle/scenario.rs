// SPDX-License-Identifier: Apache-2.0
//! Answers of a hundred kilobytes or more over a line of 20 ms, on connections that are kept, with pauses: after each the kernel
//! makes the window small again. The twin's kernel is told not to.

use anyhow::Result;

use super::slow_reader::{self, Answers};
use super::slow_start::{AFTER_IDLE, CONGESTION};
use crate::cell::{Cell, NEAR_LINE};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19263;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-start-idle",
    about: "a server of larger answers on a long line whose clients pause between them",
    expected: Expected::cause(&["slow-start"]),
    twin: Some(NEUTRAL),
    builds: slow_reader::BUILDS,
    folders: &["lab/scenarios/slow-reader", "lab/scenarios/slow-start", "lab/delayline"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    // BBR keeps its window whatever the setting says.
    cell.write_inside(CONGESTION, "reno")?;
    cell.write_inside(AFTER_IDLE, if side == Side::Fault { "1" } else { "0" })?;
    slow_reader::long_line(cell)?;
    let size = cell.draw.number("kilobytes", 200, 150..=300) * 1_000;
    // Four times the time after which the kernel takes a segment for lost, some 0.2 s, and more: each of those halves the window,
    // and after three of them what it costs is hardly the quarter that is felt.
    let gap_ms = cell.draw.number("pause_ms", 1_000, 900..=1_300);
    // With fewer there are hardly ten answers in a capture, and what looks tell of them is too little.
    let connections = (8, 6..=10);
    slow_reader::transfers(cell, PORT, &Answers { size, gap_ms, connections, ..Answers::default() }, NEAR_LINE)
}
