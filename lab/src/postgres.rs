// SPDX-License-Identifier: Apache-2.0
//! PostgreSQL of the distribution, with a cluster of its own in a cell.

use std::time::Duration;

use anyhow::Result;

use crate::cell::{Cell, Program};
use crate::zoo::animal::{as_user, folder, prepare, versioned};

/// A database that anybody on this host may use.
pub struct Postgres {
    bin: String,
    port: String,
    /// Its first process.
    pub pid: u32,
}

impl Postgres {
    /// Makes a cluster and starts it, on these CPUs (none = all); ready when this returns. No commit waits for the disk.
    pub fn start(cell: &mut Cell, port: u16, cpus: &[usize]) -> Result<Self> {
        let bin = versioned("/usr/lib/postgresql", "", "bin")?;
        let data = folder(cell, "data", Some("postgres"))?;
        let mut postgres = Self { bin, port: port.to_string(), pid: 0 };
        let initdb = postgres.program("initdb").args(["-D", &data, "-A", "trust", "-U", "postgres"]);
        prepare(cell, initdb.args(["--no-sync", "--locale=C"]))?;
        let settings = [
            format!("port={port}"),
            format!("unix_socket_directories={data}"),
            "listen_addresses=127.0.0.1".into(),
            "checkpoint_timeout=30s".into(),
            "synchronous_commit=off".into(),
            "logging_collector=off".into(),
        ];
        let settings = settings.into_iter().flat_map(|setting| ["-c".to_string(), setting]);
        let server = postgres.program("postgres").args(["-D", &data]).args(settings);
        postgres.pid = cell.start(server.on_cpus(cpus))?;
        cell.wait_for_port(port)?;
        let ready = postgres.program("pg_isready").args(["-q", "-h", "127.0.0.1", "-p", &postgres.port]);
        let stop = cell.stop.clone();
        stop.poll(Duration::from_secs(20), || Ok(prepare(cell, ready.clone()).is_ok()))?;
        Ok(postgres)
    }

    /// Its load generator, to be given what it shall do.
    pub fn pgbench(&self) -> Program {
        self.client("pgbench")
    }

    /// Runs commands of SQL to their end.
    pub fn run(&self, cell: &mut Cell, sql: &str) -> Result<()> {
        prepare(cell, self.client("psql").args(["-q", "-c", sql, "postgres"])).map(drop)
    }

    fn client(&self, name: &str) -> Program {
        self.program(name).args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port])
    }

    fn program(&self, name: &str) -> Program {
        as_user("postgres", &format!("{}/{name}", self.bin))
    }
}
