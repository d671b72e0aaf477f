// SPDX-License-Identifier: Apache-2.0
//! The services of the bench: a Go web service at a steady rate, whose work can be set, and nginx as fast
//! as one CPU allows.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::procfs::{self, TICKS_PER_SECOND};

const PORT: u16 = 19061;
/// Requests a second at the Go service: about a third of a CPU.
const RATE: f64 = 2000.0;
/// Rounds of its work before anything is added.
const ROUNDS: u64 = 600;

/// What has to be built.
pub const BUILDS: &[Build] = &[Build::Go("lab", "./digest", "digest"), Build::Go("lab", "./webload", "webload")];

/// A service to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Service {
    /// A Go web service at a steady rate.
    Go,
    /// nginx at full speed.
    Nginx,
}

/// A service under load.
pub struct Staged {
    /// Its process.
    pub pid: u32,
    /// Requests a second; 0 = as many as it takes.
    pub rate: f64,
}

impl Staged {
    /// CPU time so far.
    pub fn cpu_seconds(&self) -> Result<f64> {
        Ok(procfs::process(self.pid).context("the service has ended")?.ticks as f64 / TICKS_PER_SECOND)
    }
}

impl Service {
    /// For folders and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Nginx => "nginx",
        }
    }

    /// Starts it with its load, on CPUs of their own, and waits until both are warm.
    pub fn stage(self, cell: &mut Cell, extra: u64) -> Result<Staged> {
        let staged = match self {
            Self::Go => go(cell, extra),
            Self::Nginx => nginx(cell),
        }?;
        cell.stop.sleep(Duration::from_secs(2))?;
        Ok(staged)
    }
}

fn go(cell: &mut Cell, extra: u64) -> Result<Staged> {
    let listen = format!("127.0.0.1:{PORT}");
    let rounds = (ROUNDS + extra).to_string();
    let service = Program::built("digest").args(["-listen", &listen, "-rounds", &rounds]);
    let pid = cell.start(service.on_cpus(&[0]))?;
    cell.wait_for_port(PORT)?;
    let (url, rate) = (format!("http://127.0.0.1:{PORT}/a"), RATE.to_string());
    let load = Program::built("webload").args(["-url", &url, "-rate", &rate, "-connections", "16"]);
    cell.start(load.on_cpus(&[1]).in_group("load"))?;
    Ok(Staged { pid, rate: RATE })
}

fn nginx(cell: &mut Cell) -> Result<Staged> {
    let pages = cell.dir().join("pages");
    fs::create_dir_all(&pages).context("failed to make the folder of pages")?;
    fs::write(pages.join("index.html"), "<p>A small page.</p>\n".repeat(50)).context("failed to write a page")?;
    let dir = cell.dir().display().to_string();
    let conf = format!(
        "daemon off;\nmaster_process off;\nuser root;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {dir}/body;\n  proxy_temp_path {dir}/proxy;\n\
         \x20 fastcgi_temp_path {dir}/fastcgi;\n  uwsgi_temp_path {dir}/uwsgi;\n  scgi_temp_path {dir}/scgi;\n\
         \x20 keepalive_requests 1000000000;\n  server {{ listen 127.0.0.1:{PORT}; root {dir}/pages; }}\n}}\n"
    );
    let conf = cell.write("nginx.conf", &conf)?;
    let pid = cell.start(Program::installed("nginx").args(["-p", ".", "-c"]).args([conf]).on_cpus(&[0]))?;
    cell.wait_for_port(PORT)?;
    let url = format!("http://127.0.0.1:{PORT}/index.html");
    let load = Program::installed("wrk").args(["-t1", "-c64", "-d300s", &url]);
    cell.start(load.on_cpus(&[1]).in_group("load"))?;
    Ok(Staged { pid, rate: 0.0 })
}
