// SPDX-License-Identifier: Apache-2.0
//! A Go service that takes datagrams more slowly than they come: the kernel drops the rest, and the socket counts them. The
//! twin keeps up.

use std::time::Duration;

use anyhow::Result;

use super::SERVICE_CPU;
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19183;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "udp-unread",
    about: "a Go service that sleeps 5 ms over each datagram, of which 800 come a second",
    expected: Expected::cause(&["udp-receive-drops"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Go("lab", "./scenarios/udp-unread", "udp-unread")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let delay = if side == Side::Fault { cell.draw.number("delay_us", 5_000, 3_000..=20_000) } else { 0 };
    let service = Program::built("udp-unread").args([&PORT.to_string(), &delay.to_string()]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    // Datagrams to nobody are refused: the sender ends then.
    cell.stop.sleep(Duration::from_secs(1))?;
    // A hundredth of it at once: a burst that overflows the buffer of the twin as well is another matter.
    let rate = cell.draw.number("rate", 800, 600..=1_500).to_string();
    let sender = Program::built("udp-unread").args(["send", &PORT.to_string(), &rate]);
    cell.start(sender.named("sender").in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
