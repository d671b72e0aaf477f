// SPDX-License-Identifier: Apache-2.0
//! Databases: MariaDB's threads, PostgreSQL's processes with updates and checkpoints beside the reads, one backend of
//! them alone, and etcd with watches.

use std::fs;

use anyhow::{Context, Result};

use crate::bench::client::Address;
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::postgres::Postgres;
use crate::scenario::Aim;
use crate::zoo::animal::{Animal, PORT, Staged, Visitors, by_port, folder, prepare};
use crate::zoo::visitors;

/// The port of etcd's members for each other.
const PEERS: u16 = 8082;
const POSTGRES_NEEDS: &[&str] = &["/usr/lib/postgresql"];
const NO_BUILDS: &[Build] = &[];

/// MariaDB.
pub static MARIADB: Animal = Animal {
    name: "mariadb",
    about: "MariaDB, a row by its key, a thread for each connection",
    needs: &[],
    builds: NO_BUILDS,
    stage: mariadb,
};

/// PostgreSQL.
pub static POSTGRES: Animal = Animal {
    name: "postgres",
    about: "PostgreSQL, a row by its key, beside a hundred updates a second and a checkpoint every 30 s",
    needs: POSTGRES_NEEDS,
    builds: NO_BUILDS,
    stage: |cell, _| {
        start_postgres(cell)?;
        by_port(accounts())
    },
};

/// One backend.
pub static BACKEND: Animal = Animal {
    name: "postgres-backend",
    about: "one backend of PostgreSQL, by its process id, with one client",
    needs: POSTGRES_NEEDS,
    builds: NO_BUILDS,
    stage: |cell, _| {
        let postgres = start_postgres(cell)?;
        Ok(Staged { aim: Box::new(move || youngest_backend(postgres)), visitors: accounts().over(1) })
    },
};

/// etcd.
pub static ETCD: Animal = Animal {
    name: "etcd",
    about: "etcd, a key read by consensus, beside twenty watches in which nothing happens",
    needs: &["etcd"],
    builds: NO_BUILDS,
    stage: etcd,
};

fn mariadb(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    folder(cell, "db", None)?;
    let tables = "CREATE DATABASE shop;\nUSE shop;\n\
        CREATE TABLE orders (id INT PRIMARY KEY, customer INT, note CHAR(40));\n\
        INSERT INTO orders SELECT seq, seq * 7919 % 10007, MD5(seq) FROM seq_1_to_60000;\n";
    let tables = cell.write("tables.sql", tables)?;
    let mariadb = Program::installed("mariadbd").args(["--no-defaults", "--user=root", "--datadir=./db"]);
    let mariadb = mariadb.args(["--socket=db.sock", "--bind-address=127.0.0.1", &format!("--port={PORT}")]);
    // Without its own tables of users, which would take a separate run to make.
    let mariadb = mariadb.args(["--skip-grant-tables", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=8M"]);
    cell.start(mariadb.args([format!("--init-file={}", tables.display())]))?;
    cell.wait_for_port(PORT)?;
    let query = mariadb_packet(0, b"\x03SELECT customer, note FROM shop.orders WHERE id = 4242");
    by_port(Visitors::plain(Address::Tcp(PORT), query).greeting([Vec::new(), mariadb_login()]))
}

/// A packet of its protocol: a length of three bytes, a number, the text.
fn mariadb_packet(number: u8, text: &[u8]) -> Vec<u8> {
    let length = (text.len() as u32).to_le_bytes();
    [&length[..3], &[number], text].concat()
}

/// The answer to its greeting; nobody looks at a password.
fn mariadb_login() -> Vec<u8> {
    const PROTOCOL_41: u32 = 0x200;
    const SECURE_CONNECTION: u32 = 0x8000;
    let mut text = (PROTOCOL_41 | SECURE_CONNECTION).to_le_bytes().to_vec();
    text.extend((1u32 << 24).to_le_bytes());
    text.push(33); // utf8_general_ci
    text.extend([0; 23]);
    text.extend(b"root\0\0");
    mariadb_packet(1, &text)
}

fn start_postgres(cell: &mut Cell) -> Result<u32> {
    let postgres = Postgres::start(cell, PORT, &[])?;
    prepare(cell, postgres.pgbench().args(["-i", "-q", "-s", "4", "postgres"]))?;
    let updates = postgres.pgbench().args(["-n", "-N", "-c", "2", "-R", "100", "-T", "3600", "postgres"]);
    cell.start(updates.named("updates").in_group("load"))?;
    Ok(postgres.pid)
}

fn accounts() -> Visitors {
    let start = b"\x00\x03\x00\x00user\0postgres\0database\0postgres\0\0";
    let start = [&(start.len() as u32 + 4).to_be_bytes()[..], start].concat();
    let query = b"SELECT bid, filler FROM pgbench_accounts WHERE aid = 4242\0";
    let query = [&b"Q"[..], &(query.len() as u32 + 4).to_be_bytes(), query].concat();
    Visitors::plain(Address::Tcp(PORT), query).greeting([start])
}

/// The backend that came last: that of the visitors, which come after the updates.
fn youngest_backend(postgres: u32) -> Result<Aim> {
    let children = fs::read_to_string(format!("/proc/{postgres}/task/{postgres}/children"))?;
    let backends = children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid: &u32| {
        let title = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&title).contains("postgres postgres 127.0.0.1")
    });
    backends.max().map(Aim::Pid).context("PostgreSQL has no backend")
}

fn etcd(cell: &mut Cell, _: &Paths) -> Result<Staged> {
    let data = folder(cell, "etcd", None)?;
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let args = [
        ("--data-dir", data),
        ("--listen-client-urls", url(PORT)),
        ("--advertise-client-urls", url(PORT)),
        ("--listen-peer-urls", url(PEERS)),
        ("--initial-advertise-peer-urls", url(PEERS)),
        ("--initial-cluster", format!("default={}", url(PEERS))),
    ];
    cell.start(Program::installed("etcd").args(args.into_iter().flat_map(|(flag, value)| [flag.to_string(), value])))?;
    cell.wait_for_port(PORT)?;
    visitors::stay(cell, &post("/v3/watch", "{\"create_request\":{\"key\":\"Zm9v\"}}").over(20))?;
    by_port(post("/v3/kv/range", "{\"key\":\"Zm9v\"}"))
}

fn post(path: &str, body: &str) -> Visitors {
    let request = format!("POST {path} HTTP/1.1\r\nHost: zoo\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    Visitors { http: true, ..Visitors::plain(Address::Tcp(PORT), request) }
}
