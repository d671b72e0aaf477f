// SPDX-License-Identifier: Apache-2.0
//! A C service with a thread for each of fifty feeds, each of which gives up after half a millisecond and asks again. No
//! thread costs much, the sum is a third of a CPU. The twin waits for the next datagram.

use std::time::Duration;

use anyhow::Result;

use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19200;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "many-small-polls",
    about: "a C service whose fifty threads ask for datagrams with a timeout of 0.5 ms each",
    expected: Expected { syscall: Some("poll"), ..Expected::cause(&["busy-poll"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::C("lab/scenarios/many-small-polls/feeds.c", "feeds")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let threads = cell.draw.number("threads", 50, 40..=80).to_string();
    let patience_us = cell.draw.number("patience_us", 500, 400..=700);
    let patience = if side == Side::Fault { patience_us.to_string() } else { "0".to_string() };
    let pid = cell.start(Program::built("feeds").args([&PORT.to_string(), &threads, &patience]))?;
    cell.wait_for_port(PORT)?;
    let sender = Program::built("feeds").args(["send", &PORT.to_string(), &threads, "10"]);
    cell.start(sender.named("sender").in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
