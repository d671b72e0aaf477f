// SPDX-License-Identifier: Apache-2.0
//! A generator that does not get the CPU that it wants, by a quota or because two busy loops have its CPU too: what it measures
//! is itself. The twin has its CPU for itself.

use std::time::Duration;

use anyhow::Result;

use super::{Given, LoadScenario, Truth};
use crate::cell::{Cell, Program};
use crate::scenario::Side;
use crate::scenarios::{LOAD_CPU, SERVICE_CPU, THREADED};

const PORT: u16 = 19502;

/// Others have its CPU.
pub static BUSY: LoadScenario = LoadScenario {
    name: "starved-client",
    about: "a generator whose CPU two busy loops have",
    builds: &[THREADED],
    has_twin: true,
    stage: |cell, _, side| stage(cell, side, false),
};

/// Its group has a quota.
pub static QUOTA: LoadScenario = LoadScenario {
    name: "starved-by-quota",
    about: "a generator with a quota of a fifth of a CPU",
    builds: &[THREADED],
    has_twin: true,
    stage: |cell, _, side| stage(cell, side, true),
};

fn stage(cell: &mut Cell, side: Side, by_quota: bool) -> Result<Given> {
    let service = Program::built("threaded").args([PORT.to_string().as_str(), "plain"]);
    cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 8, 4..=32);
    let group = cell.group("starved")?;
    if side == Side::Fault && by_quota {
        group.set_quota(cell.draw.number("percent", 20, 15..=40))?;
    } else if side == Side::Fault {
        for nth in 0..2 {
            let busy = Program::installed("sh").named(&format!("busy{nth}")).args(["-c", "while :; do :; done"]);
            cell.start(busy.on_cpus(LOAD_CPU).in_group("neighbour"))?;
        }
    }
    let starved: &[&str] = &["client-starved"];
    let truth = match side {
        Side::Fault => Truth { verdict: "client-limited", has: starved, ..Truth::default() },
        Side::Twin => Truth { has_not: starved, ..Truth::default() },
    };
    let given = Given::new("--", Duration::from_secs(12), truth);
    let wrk = format!("exec wrk -t1 -c{connections} -d6s http://127.0.0.1:{PORT}/");
    let script = format!("echo $$ > {}/cgroup.procs; {wrk}", group.path().display());
    Ok(Given { args: vec!["--".into(), "sh".into(), "-c".into(), script], ..given })
}
