// SPDX-License-Identifier: Apache-2.0
//! MariaDB with clients that all book in one row and let some milliseconds pass before they commit: each of the others stands
//! before the lock of the row until then. Whoever holds it waits for its client, which is nobody's fault in the database;
//! but healthy it is not. In the twin each client has a row of its own.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::mariadb;
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19245;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "row-lock",
    about: "MariaDB whose clients book in one row and take their time to commit",
    expected: Expected::cause(&["user-lock-contention", "not-determined"]),
    twin: Some(NEUTRAL),
    builds: &[Build::Go("lab", "./scenarios/row-lock", "tills")],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let tables = "CREATE TABLE sales (id INT PRIMARY KEY, cents BIGINT);\n\
                  INSERT INTO sales SELECT seq, 0 FROM seq_1_to_64;\n";
    // A commit that waits for the disk would be another fault.
    let pid = mariadb::start(cell, PORT, tables, SERVICE_CPU)?;
    let source = format!("root@tcp(127.0.0.1:{PORT})/shop");
    let tills = cell.draw.number("tills", 8, 4..=16).to_string();
    // Shorter, and those who wait behind a few others get their answer within 10 ms, which is called no fault.
    let paper = format!("{}ms", cell.draw.number("paper_ms", 6, 6..=30));
    let own = if side == Side::Fault { "-own=false" } else { "-own=true" };
    let load = Program::built("tills").args(["-database", &source, "-tills", &tills, "-paper", &paper, own]);
    cell.start(load.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Pid(pid))
}
