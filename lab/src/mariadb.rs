// SPDX-License-Identifier: Apache-2.0
//! MariaDB of the distribution, with data of its own in a cell.

use std::fs;

use anyhow::{Context, Result};

use crate::cell::{Cell, Program};

/// Starts one with the tables of a database `shop`, made by these commands of SQL, on these CPUs; anybody on this host may use it.
/// Ready when this returns. No commit waits for the disk.
pub fn start(cell: &mut Cell, port: u16, tables: &str, cpus: &[usize]) -> Result<u32> {
    fs::create_dir_all(cell.dir().join("db")).context("failed to make the database's folder")?;
    let tables = cell.write("tables.sql", &format!("CREATE DATABASE shop;\nUSE shop;\n{tables}"))?;
    let mariadb = Program::installed("mariadbd").args(["--no-defaults", "--user=root", "--datadir=./db"]);
    let mariadb = mariadb.args(["--socket=db.sock", "--bind-address=127.0.0.1", &format!("--port={port}")]);
    let mariadb = mariadb.args(["--skip-grant-tables", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M"]);
    let mariadb = mariadb.args(["--innodb-flush-log-at-trx-commit=0"]);
    let pid = cell.start(mariadb.args([format!("--init-file={}", tables.display())]).on_cpus(cpus))?;
    cell.wait_for_port(port)?;
    Ok(pid)
}
