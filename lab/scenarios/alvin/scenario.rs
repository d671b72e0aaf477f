// SPDX-License-Identifier: Apache-2.0
//! A server of remote calls that writes the header of an answer and then its body, on sockets with the default options. The
//! body stands in its send queue until the client's host acknowledges the header, which it puts off for 40 ms, on loopback
//! too: each client gets some twenty answers a second, and nobody computes. The twin sets TCP_NODELAY.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, PYTHON, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, NEAR, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19251;

/// What all programs are.
pub(super) const BUILDS: &[Build] = &[Build::Script("lab/scenarios/alvin/rpc.py", "rpc.py")];

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "alvin",
    about: "a server of remote calls that answers in two small writes",
    expected: Expected { comm: Some("python3"), ..Expected::cause(&["nagle-delayed-ack"]) },
    twin: Some(NEUTRAL),
    builds: BUILDS,
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let nodelay = if side == Side::Fault { "0" } else { "1" };
    calls(cell, PORT, &["2", nodelay], Ipv4Addr::LOCALHOST)
}

/// Starts a server that answers in so many writes, with or without TCP_NODELAY, and a client that reaches it at `host`.
pub(super) fn calls(cell: &mut Cell, port: u16, answers: &[&str], host: Ipv4Addr) -> Result<Aim> {
    cell.bring("rpc.py")?;
    let port_word = port.to_string();
    let server = ["rpc.py", "serve", &port_word].into_iter().chain(answers.iter().copied());
    let pid = cell.start(Program::installed(PYTHON).named("server").args(server).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(port)?;
    let connections = cell.draw.number("connections", 2, 1..=6).to_string();
    // A host that has said something within 40 ms takes it for a dialogue, and acknowledges with what it says next.
    let think = cell.draw.number("think_ms", 8, 2..=20).to_string();
    let args = ["rpc.py", "ask", &host.to_string(), &port_word, &connections, &think];
    let client = Program::installed(PYTHON).named("client").args(args).on_cpus(LOAD_CPU).in_group("load");
    cell.start(if host == NEAR { client.far() } else { client })?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
