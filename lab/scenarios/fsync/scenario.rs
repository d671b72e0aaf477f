// SPDX-License-Identifier: Apache-2.0
//! A threaded C service that syncs a journal in each request, while somebody else writes to the same disk. The twin keeps
//! no journal.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, THREADED, full_load};
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19133;

/// Length of a record, bytes: so long that the fastest disk does not keep up with the CPU.
const RECORD: &str = "4096";

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "fsync",
    about: "a threaded C service that syncs a journal in each request, beside another writer",
    expected: Expected { syscall: Some("fsync"), ..Expected::cause(&["disk-wait"]) },
    twin: Some(NEUTRAL),
    builds: &[THREADED],
    folders: &["lab/threaded"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let mut args = vec![PORT.to_string(), "plain".to_string()];
    if side == Side::Fault {
        args = vec![PORT.to_string(), "journal".into(), "journal".into(), RECORD.into()];
        let write = "while :; do dd if=/dev/zero of=other bs=64k count=64 conv=fsync status=none; done";
        cell.start(Program::installed("sh").named("writer").args(["-c", write]).on_cpus(LOAD_CPU).in_group("load"))?;
    }
    let pid = cell.start(Program::built("threaded").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // So many that each waits longer than a fast disk takes for one.
    let connections = cell.draw.number("connections", 32, 24..=48);
    full_load(cell, PORT, "/", connections)?;
    cell.stop.sleep(Duration::from_secs(1))?;
    Ok(Aim::Pid(pid))
}
