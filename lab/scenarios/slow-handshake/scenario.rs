// SPDX-License-Identifier: Apache-2.0
//! A Go service behind TLS that looks its certificate up before each handshake, which takes long, and answers at once. An nginx before
//! it makes a connection for each request, so that its own clients wait for the handshakes, and for nothing that was asked. The twin
//! has its certificate at hand.

use std::time::Duration;

use anyhow::Result;

use super::churn::nginx;
use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::certificate;
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19486;
pub(super) const VAULT: u16 = 19487;
pub(super) const BUILDS: &[Build] = &[Build::Go("lab", "./scenarios/slow-handshake", "vault"), WEBLOAD];

/// Whom it asks takes long for a handshake.
pub static SCENARIO: Scenario = Scenario {
    name: "slow-handshake",
    about: "an nginx before a Go service behind TLS whose handshakes take 90 ms, and its answers no time",
    expected: Expected { says: Some("in TLS handshakes"), ..Expected::cause(&["slow-dependency"]) },
    twin: Some(NEUTRAL),
    builds: BUILDS,
    folders: &["lab/webload", "lab/scenarios/churn"],
    stage: |cell, side| {
        stage(cell, side)?;
        Ok(Aim::Port(PORT))
    },
};

/// Starts both, and clients.
pub(super) fn stage(cell: &mut Cell, side: Side) -> Result<()> {
    certificate::write(cell)?;
    let delay = if side == Side::Fault { cell.draw.number("delay_ms", 90, 40..=200) } else { 0 };
    let vault = Program::built("vault").args([VAULT.to_string(), delay.to_string()]);
    cell.start(vault)?;
    cell.wait_for_port(VAULT)?;
    // Each handshake is a whole one.
    let pass = format!("location / {{ proxy_pass https://127.0.0.1:{VAULT}; proxy_ssl_session_reuse off; }}");
    nginx(cell, "front", (PORT, SERVICE_CPU), "", &pass)?;
    let rate = cell.draw.number("rate", 50, 20..=100);
    // At 200 ms each, 100 a second need twenty connections.
    steady_load(cell, PORT, "/", rate, 32)?;
    cell.stop.sleep(Duration::from_secs(2))
}
