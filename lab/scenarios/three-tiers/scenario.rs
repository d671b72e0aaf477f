// SPDX-License-Identifier: Apache-2.0
//! nginx before a Go service that asks MariaDB for a customer's orders. No index has the customer, so MariaDB reads all
//! orders for each request; the walk goes through two processes and ends there. The twin has the index.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{SERVICE_CPU, WEBLOAD, steady_load};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19151;
const SHOP: u16 = 19152;
const DATABASE: u16 = 19153;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "three-tiers",
    about: "nginx, a Go service and MariaDB, which scans 200,000 rows for want of an index",
    expected: Expected { comm: Some("mariadbd"), end: Some("code on a CPU"), ..Expected::cause(&["slow-dependency"]) },
    twin: Some(NEUTRAL),
    builds: &[Build::Go("lab", "./scenarios/three-tiers", "shop"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    let rows = cell.draw.number("rows", 200_000, 150_000..=250_000);
    start_database(cell, (DATABASE, rows), side == Side::Twin, &[])?;
    let source = format!("root@tcp(127.0.0.1:{DATABASE})/shop");
    let shop = Program::built("shop").args(["-listen", &format!("127.0.0.1:{SHOP}"), "-database", &source]);
    cell.start(shop.on_cpus(SERVICE_CPU))?;
    // It listens once it has prepared its query, that is, once the table is full.
    cell.wait_for_port(SHOP)?;
    let conf = cell.write("nginx.conf", &configuration(&cell.dir().display().to_string()))?;
    let nginx = Program::installed("nginx").args(["-p", ".", "-c"]).args([conf]);
    cell.start(nginx.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    // At most one request at a time, mostly: queries that wait for each other's CPU would be another fault.
    let rate = cell.draw.number("rate", 15, 8..=20);
    let connections = cell.draw.number("connections", 4, 2..=6);
    steady_load(cell, PORT, "/orders", rate, connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Port(PORT))
}

/// MariaDB at a port, with so many orders of customers.
pub(super) fn start_database(
    cell: &mut Cell,
    (port, rows): (u16, u64),
    with_index: bool,
    settings: &[&str],
) -> Result<()> {
    fs::create_dir_all(cell.dir().join("db")).context("failed to make the database's folder")?;
    let index = if with_index { ", INDEX (customer)" } else { "" };
    let tables = format!(
        "CREATE DATABASE shop;\nUSE shop;\n\
         CREATE TABLE orders (id INT PRIMARY KEY, customer INT, cents INT, note CHAR(40){index});\n\
         INSERT INTO orders SELECT seq, seq * 7919 % 10007, seq * 37 % 9900, MD5(seq) FROM seq_1_to_{rows};\n"
    );
    let tables = cell.write("tables.sql", &tables)?;
    let mariadb = Program::installed("mariadbd").args(["--no-defaults", "--user=root", "--datadir=./db"]);
    let mariadb = mariadb.args(["--socket=db.sock", "--bind-address=127.0.0.1", &format!("--port={port}")]);
    // Without its own tables of users, which would take a separate run to make.
    let mariadb = mariadb.args(["--skip-grant-tables", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M"]);
    let mariadb = mariadb.args([format!("--init-file={}", tables.display())]);
    cell.start(mariadb.args(settings).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(port)
}

fn configuration(dir: &str) -> String {
    format!(
        "daemon off;\nuser root;\nworker_processes 1;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {dir}/body;\n  proxy_temp_path {dir}/proxy;\n\
         \x20 fastcgi_temp_path {dir}/fastcgi;\n  uwsgi_temp_path {dir}/uwsgi;\n  scgi_temp_path {dir}/scgi;\n\
         \x20 keepalive_requests 1000000;\n\
         \x20 upstream shop {{ server 127.0.0.1:{SHOP}; keepalive 8; keepalive_requests 1000000; }}\n\
         \x20 server {{\n    listen 127.0.0.1:{PORT};\n\
         \x20   location / {{ proxy_pass http://shop; proxy_http_version 1.1; proxy_set_header Connection \"\"; }}\n\
         \x20 }}\n}}\n"
    )
}
