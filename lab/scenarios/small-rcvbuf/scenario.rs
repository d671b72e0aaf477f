// SPDX-License-Identifier: Apache-2.0
//! Clients at the end of a line of 20 ms read at once, into receive buffers that they made small: an answer takes as many
//! round trips as it has buffers. The twin's clients leave the size to the kernel.

use anyhow::Result;

use super::slow_reader::{self, Answers};
use crate::cell::{Cell, NEAR_LINE};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19256;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "small-rcvbuf",
    about: "a server of large answers on a long line whose clients have small receive buffers",
    expected: Expected::cause(&["receiver-limited"]),
    twin: Some(NEUTRAL),
    builds: slow_reader::BUILDS,
    folders: &["lab/scenarios/slow-reader", "lab/delayline"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    slow_reader::long_line(cell)?;
    let rcvbuf = if side == Side::Fault { cell.draw.number("rcvbuf", 8_192, 4_096..=12_288) } else { 0 };
    let size = cell.draw.number("kilobytes", 300, 200..=600) * 1_000;
    let answers = Answers { size, rcvbuf, ..Answers::default() };
    slow_reader::transfers(cell, PORT, &answers, NEAR_LINE)
}
