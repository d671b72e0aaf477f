// SPDX-License-Identifier: Apache-2.0
//! A server of large answers whose interface lets 20 Mbit/s out: what it sends stands in the queue of a shaper, and is dropped
//! where that is full. The twin's shaper lets a gigabit out, which nobody fills.

use anyhow::Result;

use super::slow_reader::{self, Answers};
use crate::cell::{Cell, NEAR};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19264;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "link-saturated",
    about: "a server of large answers behind a shaper of 20 Mbit/s, which its clients fill",
    expected: Expected::cause(&["link-saturated"]),
    twin: Some(NEUTRAL),
    builds: slow_reader::BUILDS,
    folders: &["lab/scenarios/slow-reader"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let (mbit, ms) = (cell.draw.number("mbit", 20, 10..=50), cell.draw.number("queue_ms", 150, 60..=400));
    match side {
        Side::Fault => cell.shape(&format!("tbf rate {mbit}mbit burst 64kb latency {ms}ms"))?,
        Side::Twin => cell.shape("tbf rate 1000mbit burst 1mb latency 100ms")?,
    }
    let size = cell.draw.number("kilobytes", 600, 400..=1_500) * 1_000;
    // The twin's clients would fill any line if they asked again at once.
    let gap_ms = if side == Side::Fault { 50 } else { 200 };
    slow_reader::transfers(cell, PORT, &Answers { size, gap_ms, ..Answers::default() }, NEAR)
}
