// SPDX-License-Identifier: Apache-2.0
//! Answers of a hundred kilobytes or more over a line of 20 ms, each on a connection of its own: they take the round trips in
//! which a new connection's window grows. The twin's clients keep their connections, whose windows have grown.

use anyhow::Result;

use super::slow_reader::{self, Answers};
use crate::cell::{Cell, NEAR_LINE};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19262;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-start",
    about: "a server of larger answers on a long line whose clients make a connection for each",
    expected: Expected::cause(&["slow-start"]),
    twin: Some(NEUTRAL),
    builds: slow_reader::BUILDS,
    folders: &["lab/scenarios/slow-reader", "lab/delayline"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    // What pauses do is another scenario's.
    cell.write_inside(AFTER_IDLE, "0")?;
    if cell.draw.number("reno", 0, 0..=1) == 1 {
        cell.write_inside(CONGESTION, "reno")?;
    }
    slow_reader::long_line(cell)?;
    let size = cell.draw.number("kilobytes", 100, 80..=300) * 1_000;
    let answers = Answers { size, fresh: side == Side::Fault, ..Answers::default() };
    slow_reader::transfers(cell, PORT, &answers, NEAR_LINE)
}

/// Whether the kernel makes windows small again after a pause.
pub(super) const AFTER_IDLE: &str = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";

/// What decides about windows.
pub(super) const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
