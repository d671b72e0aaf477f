// SPDX-License-Identifier: Apache-2.0
//! A prefork service in Perl that keeps a transaction of its database open while it sleeps: the other workers wait for the database, and
//! that for this one. The twin does not sleep.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, WEBLOAD, reconnecting_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::postgres::Postgres;
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19511;
const DATABASE: u16 = 19512;

/// The service and its clients.
pub(super) const BUILDS: &[Build] = &[Build::Script("lab/scenarios/open-transaction/tills.pl", "tills.pl"), WEBLOAD];

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "open-transaction",
    about: "a Perl service whose workers wait for a row of a database that one of them keeps locked while it sleeps",
    expected: Expected { syscall: Some("clock_nanosleep"), ..Expected::cause(&["sleep-in-path"]) },
    twin: Some(NEUTRAL),
    builds: BUILDS,
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let postgres = Postgres::start(cell, DATABASE, LOAD_CPU)?;
    postgres.run(cell, "CREATE TABLE total AS SELECT 0::bigint AS cents")?;
    serve(cell, side, PORT, (&format!("dbi:Pg:host=127.0.0.1;port={DATABASE};dbname=postgres"), "postgres"))
}

/// Starts the service before a database, named as Perl does, with its user; and its clients.
pub(super) fn serve(cell: &mut Cell, side: Side, port: u16, (source, user): (&str, &str)) -> Result<Aim> {
    cell.bring("tills.pl")?;
    let (workers, pause_ms) = (cell.draw.number("workers", 6, 4..=12), cell.draw.number("pause_ms", 10, 6..=30));
    let pause_ms = if side == Side::Fault { pause_ms } else { 0 }.to_string();
    let args = ["tills.pl", &port.to_string(), &workers.to_string(), source, user, &pause_ms];
    let pid = cell.start(Program::installed("perl").args(args).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(port)?;
    // More than the row is free for.
    reconnecting_load(cell, port, 250, workers)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
