// SPDX-License-Identifier: Apache-2.0
//! PostgreSQL whose clients all book in one row and let some milliseconds pass before they commit, as `row-lock` does with MariaDB. Here
//! each client has a process of its own, and these tell each other by a signal when a row is free. In the twin each client has a row of
//! its own.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU};
use crate::cell::Cell;
use crate::postgres::Postgres;
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19546;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "row-lock-postgres",
    about: "PostgreSQL whose clients book in one row and take their time to commit",
    expected: Expected {
        says: Some("before a lock, and whoever holds it waits for its own client"),
        ..Expected::cause(&["not-determined"])
    },
    twin: Some(NEUTRAL),
    builds: &[],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let postgres = Postgres::start(cell, PORT, SERVICE_CPU)?;
    let table = "CREATE TABLE sales AS SELECT id, 0::bigint AS cents FROM generate_series(0, 63) AS id";
    postgres.run(cell, table)?;
    // How long a till looks at its paper: shorter, and those who wait behind a few others get their answer within 10 ms.
    let paper_ms = cell.draw.number("paper_ms", 8, 6..=30);
    let row = if side == Side::Fault { "1" } else { ":client_id" };
    let book = format!(
        "BEGIN;\nUPDATE sales SET cents = cents + 1 WHERE id = {row};\n\\sleep {paper_ms} ms\nCOMMIT;\n\\sleep {paper_ms} ms\n"
    );
    let book = cell.write("book.sql", &book)?.display().to_string();
    let tills = cell.draw.number("tills", 8, 4..=16).to_string();
    let load = postgres.pgbench().args(["-n", "-f", &book, "-c", &tills, "-j", "2", "-T", "3600", "postgres"]);
    cell.start(load.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(postgres.pid))
}
