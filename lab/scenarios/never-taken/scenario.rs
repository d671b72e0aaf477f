// SPDX-License-Identifier: Apache-2.0
//! A prefork service in Perl whose workers serve one connection each until its client closes it, as many clients that go on asking over
//! theirs, and newcomers: nobody ever takes them, while the others are answered as quickly as ever. The twin's workers close after each
//! answer.

use std::time::Duration;

use anyhow::Result;

use super::{WEBLOAD, own_load, reconnecting_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19508;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "never-taken",
    about: "a prefork service in Perl whose workers keep to clients that go on asking, while others stand before it",
    expected: Expected { says: Some("and none is taken"), ..Expected::cause(&["pool-exhausted"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Script("lab/scenarios/kept-open/desk.pl", "desk.pl"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("desk.pl")?;
    let workers = cell.draw.number("workers", 4, 2..=8);
    let mode = if side == Side::Fault { "keeps" } else { "closes" };
    let pid =
        cell.start(Program::installed("perl").args(["desk.pl", &PORT.to_string(), &workers.to_string(), mode]))?;
    cell.wait_for_port(PORT)?;
    let (rate, newcomers) = (cell.draw.number("rate", 60, 30..=200), cell.draw.number("newcomers", 20, 10..=40));
    let of_before = if side == Side::Fault { own_load } else { reconnecting_load };
    of_before(cell, PORT, rate, workers)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    reconnecting_load(cell, PORT, newcomers, 8)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
