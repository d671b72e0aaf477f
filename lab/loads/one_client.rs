// SPDX-License-Identifier: Apache-2.0
//! A connection for each message, all from one address: its local ports are used up, and nobody's production looks like that.
//! The twin comes from many addresses.

use std::time::Duration;

use anyhow::Result;

use super::{Given, LoadScenario, Truth};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Side;
use crate::scenarios::SERVICE_CPU;

const PORT: u16 = 19503;

/// The load.
pub static SCENARIO: LoadScenario = LoadScenario {
    name: "one-client",
    about: "a connection for each message from one address, or from many",
    builds: &[Build::Script("lab/loads/echo.py", "echo.py")],
    has_twin: true,
    stage,
};

fn stage(cell: &mut Cell, _: &Paths, side: Side) -> Result<Given> {
    cell.bring("echo.py")?;
    let service = Program::installed("python3").args(["echo.py", &PORT.to_string(), "100"]);
    cell.start(service.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // Used again a second after a connection has ended, at the earliest.
    let rate = cell.draw.number("rate", 500, 400..=700);
    cell.write_inside("/proc/sys/net/ipv4/ip_local_port_range", &format!("30000 {}", 30_000 + rate / 2))?;
    let no_port: &[&str] = &["no-port"];
    let (addresses, truth) = match side {
        Side::Fault => (1, Truth { has: no_port, ..Truth::default() }),
        Side::Twin => (16, Truth { has_not: no_port, ..Truth::default() }),
    };
    let args = format!(
        "tcp://127.0.0.1:{PORT} --rate {rate} --for 6s --writes 100 --reply 100 --new-connections --source-addresses {addresses}"
    );
    Ok(Given::new(&args, Duration::from_secs(16), truth))
}
