// SPDX-License-Identifier: Apache-2.0
//! A Node.js service that looks a name up in each request, and the only name server of its list never answers: with the timeouts of the
//! C library no request gets an answer within the capture, and hardly a wait ends. In the twin it answers.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19515;
const NAME_SERVERS: [&str; 2] = ["127.0.0.1", "127.0.0.2"];

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
    cell.bring("names.py")?;
    cell.bring("agency.js")?;
    let [silent, answering] = NAME_SERVERS;
    let names = Program::installed(PYTHON).named("names").args(["names.py", silent, answering, "silent"]);
    cell.start(names.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(53)?;
    cell.write("resolv.conf", &format!("nameserver {}\n", if side == Side::Fault { silent } else { answering }))?;
    // The list is at a fixed place: a mount namespace of the service's own has ours there. The process stays the same.
    let mounted = format!("mount --bind resolv.conf /etc/resolv.conf && exec node agency.js {PORT}");
    let agency = Program::installed("unshare").named("agency").args(["--mount", "sh", "-c", &mounted]);
    let pid = cell.start(agency.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let (rate, connections) = (cell.draw.number("rate", 30, 10..=60), cell.draw.number("connections", 16, 8..=40));
    steady_load(cell, PORT, "/", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(3))?;
    Ok(Aim::Pid(pid))
}
