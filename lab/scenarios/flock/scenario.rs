// SPDX-License-Identifier: Apache-2.0
//! Perl processes that each sign a guest book, a file that they lock, and sleep 10 ms while they hold the lock: only one of
//! them answers at a time. In the twin each has a book of its own, and sleeps as long.

use std::time::Duration;

use anyhow::Result;

use super::{SERVICE_CPU, full_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19171;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "flock",
    about: "four Perl processes that sleep 10 ms while they hold the lock on one file",
    expected: Expected { line: Some("blocked_file_lock"), ..Expected::cause(&["user-lock-contention"]) },
    twin: Some(Expected { syscall: Some("nanosleep"), ..Expected::cause(&["sleep-in-path"]) }),
    builds: &[Build::Script("lab/scenarios/flock/guestbook.pl", "guestbook.pl")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("guestbook.pl")?;
    let files = if side == Side::Fault { "one" } else { "each" };
    let processes = cell.draw.number("processes", 4, 3..=8);
    let held_ms = cell.draw.number("held_ms", 10, 5..=40);
    let args = ["guestbook.pl", &PORT.to_string(), &processes.to_string(), &held_ms.to_string(), files];
    let pid = cell.start(Program::installed("perl").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    full_load(cell, PORT, "/", processes)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
