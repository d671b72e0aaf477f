// SPDX-License-Identifier: Apache-2.0
//! The open transaction once more, before MariaDB: all of its connections are served by threads of one process, which hand rows to each
//! other inside it.

use anyhow::Result;

use super::LOAD_CPU;
use super::open_transaction::{BUILDS, serve};
use crate::cell::Cell;
use crate::mariadb;
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19516;
const DATABASE: u16 = 19517;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "open-transaction-mariadb",
    about: "the same service before MariaDB",
    // Where it sleeps for about as long as the database needs to give the row to the next one, neither is most of its time.
    expected: Expected {
        syscall: Some("clock_nanosleep"),
        says: Some("keeps a transaction open"),
        ..Expected::cause(&["sleep-in-path", "not-determined"])
    },
    twin: Some(NEUTRAL),
    builds: BUILDS,
    folders: &["lab/scenarios/open-transaction", "lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let table = "CREATE TABLE total (cents BIGINT) ENGINE=InnoDB;\nINSERT INTO total VALUES (0);\n";
    mariadb::start(cell, DATABASE, table, LOAD_CPU)?;
    serve(cell, side, PORT, (&format!("dbi:MariaDB:host=127.0.0.1;port={DATABASE};database=shop"), "root"))
}
