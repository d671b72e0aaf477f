// SPDX-License-Identifier: Apache-2.0
//! A Perl web service with a pool of threads, each of which serves a connection until its client closes it, and more clients than
//! threads that keep theirs between two questions: the others' questions lie unread. The twin has more threads than there are clients.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19507;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "pool-kept",
    about: "a Perl service whose few threads idle clients hold by connections that they keep for a while",
    expected: Expected { says: Some("connections on which nobody asks"), ..Expected::cause(&["pool-exhausted"]) },
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/pool-kept/board.pl", "board.pl"),
        Build::Script("lab/scenarios/pool-kept/readers.py", "readers.py"),
    ],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("board.pl")?;
    cell.bring("readers.py")?;
    let threads = cell.draw.number("threads", 4, 2..=8);
    let (port, pool) = (PORT.to_string(), if side == Side::Fault { threads } else { threads * 2 + 2 }.to_string());
    let pid = cell.start(Program::installed("perl").args(["board.pl", &port, &pool]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let (questions, pause_ms) = (cell.draw.number("questions", 4, 2..=8), cell.draw.number("pause_ms", 100, 50..=200));
    let numbers = [u64::from(PORT), threads * 2, questions, pause_ms].map(|number| number.to_string());
    let readers = Program::installed(PYTHON).args(["readers.py".to_string()]).args(numbers);
    cell.start(readers.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(Aim::Pid(pid))
}
