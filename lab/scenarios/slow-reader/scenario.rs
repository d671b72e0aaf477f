// SPDX-License-Identifier: Apache-2.0
//! A server of large answers whose clients read a megabyte a second: their windows shut, and the answers stand in the
//! server's send queues. The twin's clients read as fast as it comes.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, FAR, FAR_LINE, NEAR, NEAR_LINE, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19255;

/// What is needed without a long line.
const FILES: Build = Build::Script("lab/scenarios/slow-reader/files.py", "files.py");

/// What is needed for one.
pub(super) const BUILDS: &[Build] = &[FILES, Build::C("lab/delayline/delayline.c", "delayline")];

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-reader",
    about: "a server of large answers whose clients read slowly",
    expected: Expected::cause(&["receiver-limited"]),
    twin: Some(NEUTRAL),
    builds: &[FILES],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let pace = if side == Side::Fault { cell.draw.number("bytes_a_ms", 1_000, 500..=3_000) } else { 0 };
    let size = cell.draw.number("kilobytes", 3_000, 2_000..=5_000) * 1_000;
    let answers = Answers { size, pace, ..Answers::default() };
    transfers(cell, PORT, &answers, Ipv4Addr::LOCALHOST)
}

/// What is sent, and how it is read; a buffer of 0 is left to the kernel, a pace of 0 is as fast as it comes.
pub(super) struct Answers {
    pub size: u64,
    pub sndbuf: u64,
    pub rcvbuf: u64,
    pub pace: u64,
    /// From an answer to the next question.
    pub gap_ms: u64,
    /// Each question has a connection of its own.
    pub fresh: bool,
    /// How many ask at once: usually, and between which bounds.
    pub connections: (u64, RangeInclusive<u64>),
}

impl Default for Answers {
    fn default() -> Self {
        Self { size: 0, sndbuf: 0, rcvbuf: 0, pace: 0, gap_ms: 200, fresh: false, connections: (3, 2..=5) }
    }
}

/// Starts a server and clients that reach it at `host`.
pub(super) fn transfers(cell: &mut Cell, port: u16, answers: &Answers, host: Ipv4Addr) -> Result<Aim> {
    cell.bring("files.py")?;
    let (size, sndbuf) = (answers.size.to_string(), answers.sndbuf.to_string());
    let args = ["files.py", "serve", &port.to_string(), &size, &sndbuf];
    let pid = cell.start(Program::installed(PYTHON).named("server").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(port)?;
    let (usual, bounds) = answers.connections.clone();
    let connections = cell.draw.number("connections", usual, bounds).to_string();
    let numbers = [answers.gap_ms, answers.rcvbuf, answers.pace, u64::from(answers.fresh)].map(|n| n.to_string());
    let [gap_ms, rcvbuf, pace, fresh] = &numbers;
    let args = ["files.py", "ask", &host.to_string(), &port.to_string(), &connections, gap_ms, rcvbuf, pace, fresh];
    let client = Program::installed(PYTHON).named("client").args(args).on_cpus(LOAD_CPU).in_group("load");
    cell.start(if host == Ipv4Addr::LOCALHOST { client } else { client.far() })?;
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(Aim::Pid(pid))
}

/// Makes a line to the cell's far end on which a round trip takes 20 ms. The near end of it is [`NEAR_LINE`].
pub(super) fn long_line(cell: &mut Cell) -> Result<()> {
    let end = |own: Ipv4Addr, carrier: Ipv4Addr, other: Ipv4Addr| {
        let args = [own, carrier, other].map(|address| address.to_string());
        Program::built("delayline").args(args).args(["10"]).on_cpus(LOAD_CPU).in_group("line")
    };
    cell.start(end(FAR_LINE, FAR, NEAR).named("far-line").far())?;
    cell.start(end(NEAR_LINE, NEAR, FAR).named("near-line"))?;
    cell.stop.sleep(Duration::from_millis(500))
}
