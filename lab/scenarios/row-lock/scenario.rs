// SPDX-License-Identifier: Apache-2.0
//! MariaDB with clients that all book in one row and let some milliseconds pass before they commit: each of the others stands
//! before the lock of the row until then. Whoever holds it waits for its client, which is nobody's fault in the database;
//! but healthy it is not. In the twin each client has a row of its own.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{LOAD_CPU, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
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
    fs::create_dir_all(cell.dir().join("db")).context("failed to make the database's folder")?;
    let tables = "CREATE DATABASE shop;\nUSE shop;\n\
                  CREATE TABLE sales (id INT PRIMARY KEY, cents BIGINT);\n\
                  INSERT INTO sales SELECT seq, 0 FROM seq_1_to_64;\n";
    let tables = cell.write("tables.sql", tables)?;
    let mariadb = Program::installed("mariadbd").args(["--no-defaults", "--user=root", "--datadir=./db"]);
    let mariadb = mariadb.args(["--socket=db.sock", "--bind-address=127.0.0.1", &format!("--port={PORT}")]);
    let mariadb = mariadb.args(["--skip-grant-tables", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M"]);
    // A commit that waits for the disk would be another fault.
    let mariadb = mariadb.args(["--innodb-flush-log-at-trx-commit=0"]);
    let pid = cell.start(mariadb.args([format!("--init-file={}", tables.display())]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
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
