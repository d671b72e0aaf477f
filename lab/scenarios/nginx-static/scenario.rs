// SPDX-License-Identifier: Apache-2.0
//! nginx serves small static files as fast as one CPU allows. Nothing is wrong with it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{SERVICE_CPU, full_load};
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19041;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "nginx-static",
    about: "nginx with one worker serves small files at full speed",
    expected: Expected::cause(&["at-capacity"]),
    twin: None,
    builds: &[],
    folders: &[],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    let pages = cell.dir().join("pages");
    fs::create_dir_all(&pages).context("failed to make the folder of pages")?;
    fs::write(pages.join("index.html"), "<p>A small page.</p>\n".repeat(50)).context("failed to write a page")?;
    let conf = cell.write("nginx.conf", &configuration(&cell.dir().display().to_string()))?;
    let nginx = Program::installed("nginx").args(["-p", ".", "-c"]).args([conf]);
    cell.start(nginx.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 64, 32..=200);
    full_load(cell, PORT, "/index.html", connections)?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Port(PORT))
}

fn configuration(dir: &str) -> String {
    format!(
        "daemon off;\nuser root;\nworker_processes 1;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n  access_log {dir}/access.log;\n  client_body_temp_path {dir}/body;\n  proxy_temp_path {dir}/proxy;\n\
         \x20 fastcgi_temp_path {dir}/fastcgi;\n  uwsgi_temp_path {dir}/uwsgi;\n  scgi_temp_path {dir}/scgi;\n\
         \x20 keepalive_requests 1000000;\n  server {{ listen 127.0.0.1:{PORT}; root {dir}/pages; }}\n}}\n"
    )
}
