// SPDX-License-Identifier: Apache-2.0
//! A server at the end of a line of 20 ms made its send buffers small: what is on its way fills them, and the line is mostly
//! empty. The twin leaves the size to the kernel.

use anyhow::Result;

use super::slow_reader::{self, Answers};
use crate::cell::{Cell, NEAR_LINE};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19257;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "small-sndbuf",
    about: "a server of large answers on a long line, with small send buffers",
    expected: Expected::cause(&["send-buffer-limited"]),
    twin: Some(NEUTRAL),
    builds: slow_reader::BUILDS,
    folders: &["lab/scenarios/slow-reader", "lab/delayline"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    slow_reader::long_line(cell)?;
    let sndbuf = if side == Side::Fault { cell.draw.number("sndbuf", 8_192, 4_096..=12_288) } else { 0 };
    let size = cell.draw.number("kilobytes", 300, 200..=600) * 1_000;
    let answers = Answers { size, sndbuf, ..Answers::default() };
    slow_reader::transfers(cell, PORT, &answers, NEAR_LINE)
}
