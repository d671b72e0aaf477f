// SPDX-License-Identifier: Apache-2.0
//! Clients behind one address and a strict gateway: their ports come again while the service still has the connection of another
//! client in TIME_WAIT, and all of them stand. The twin has one client, with as many sockets in TIME_WAIT.

use std::time::Duration;

use anyhow::Result;

use super::ceiling::PORT;
use super::{Given, LoadScenario, Truth};
use crate::builds::Build;
use crate::cell::{Cell, NEAR, Program};
use crate::loader::Place;
use crate::paths::Paths;
use crate::scenario::Side;
use crate::scenarios::SERVICE_CPU;

/// Files that it is made of.
pub const BUILDS: &[Build] = &[
    Build::Script("stories/001-clumsy-kernel/hello.js", "hello.js"),
    Build::Script("lab/scenarios/clumsy-kernel-nat/nat.py", "nat.py"),
];

/// The load.
pub static SCENARIO: LoadScenario = LoadScenario {
    name: "nat-ceiling",
    about: "ab on three clients behind one address, or on one",
    builds: BUILDS,
    has_twin: true,
    stage,
};

fn stage(cell: &mut Cell, _: &Paths, side: Side) -> Result<Given> {
    let clash: &[&str] = &["time-wait-collision"];
    let (clients, truth) = match side {
        Side::Fault => {
            (3, Truth { verdict: "misleading", has: clash, service: Some("time-wait-collision"), ..Truth::default() })
        }
        Side::Twin => (1, Truth { has_not: clash, ..Truth::default() }),
    };
    let each = cell.draw.number("each", 33, 20..=60);
    let pid = serve(cell)?;
    let args = format!("--diagnose={pid} -- {}", clients_command(clients, &format!("ab -q -c {each} -t 8 -n 9999999")));
    Ok(Given { place: Place { far: true, cpus: Vec::new() }, ..Given::new(&args, Duration::from_secs(60), truth) })
}

/// Starts the service. Its process.
///
/// # Errors
/// There is no Node.js.
pub fn serve(cell: &mut Cell) -> Result<u32> {
    cell.bring("hello.js")?;
    cell.bring("nat.py")?;
    let service = Program::installed("node").args(["hello.js", &PORT.to_string(), "0.0.0.0"]);
    let pid = cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    Ok(pid)
}

/// Runs a generator on so many clients behind one address.
pub fn clients_command(clients: u32, generator: &str) -> String {
    format!("/usr/bin/python3 nat.py {clients} strict {generator} http://{NEAR}:{PORT}/")
}
