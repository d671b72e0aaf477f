// SPDX-License-Identifier: Apache-2.0
//! A Node.js service that looks a name up in each request, and the only name server of its list never answers: with the timeouts of the
//! C library no request gets an answer within the capture, and hardly a wait ends. In the twin it answers.

use std::time::Duration;

use anyhow::Result;

use super::dns_stall::{NAME_SERVERS, start_asking, start_names};
use super::{WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::Cell;
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19515;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "dns-silent",
    about: "a Node.js service that looks names up, and whose only name server never answers",
    expected: Expected { syscall: Some("poll"), ..Expected::cause(&["slow-dns"]) },
    twin: Some(NEUTRAL),
    builds: &[
        Build::Script("lab/scenarios/dns-stall/names.py", "names.py"),
        Build::Script("lab/scenarios/dns-silent/agency.js", "agency.js"),
        WEBLOAD,
    ],
    folders: &["lab/scenarios/dns-stall", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    cell.bring("agency.js")?;
    let [silent, answering] = NAME_SERVERS;
    let asked = if side == Side::Fault { silent } else { answering };
    start_names(cell, true)?;
    let pid = start_asking(cell, &format!("nameserver {asked}\n"), &format!("node agency.js {PORT}"))?;
    cell.wait_for_port(PORT)?;
    let (rate, connections) = (cell.draw.number("rate", 30, 10..=60), cell.draw.number("connections", 16, 8..=40));
    steady_load(cell, PORT, "/", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(Aim::Pid(pid))
}
