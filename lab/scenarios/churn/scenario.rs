// SPDX-License-Identifier: Apache-2.0
//! nginx with one worker that closes each connection after its answer, and clients that ask as fast as they can: a good part of
//! its CPU time goes to taking and closing connections. The twin closes them too, and is asked a few hundred times a second:
//! that is harmless.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{SERVICE_CPU, WEBLOAD, full_load, steady_load};
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19261;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "churn",
    about: "nginx with a connection for each request, as fast as its clients can",
    expected: Expected::cause(&["connection-churn"]),
    twin: Some(NEUTRAL),
    builds: &[WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    nginx(cell, "nginx", (PORT, SERVICE_CPU), "keepalive_timeout 0;", "return 200 \"here\\n\";")?;
    let connections = cell.draw.number("connections", 64, 16..=200);
    let rate = cell.draw.number("rate", 300, 100..=600);
    match side {
        Side::Fault => full_load(cell, PORT, "/", connections)?,
        Side::Twin => steady_load(cell, PORT, "/", rate, 8)?,
    }
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Port(PORT))
}

/// Starts one with a worker and a folder of its own, some directives and what its server does.
pub(super) fn nginx(
    cell: &mut Cell,
    name: &str,
    (port, cpus): (u16, &[usize]),
    more: &str,
    serves: &str,
) -> Result<()> {
    let dir = cell.dir().join(name).display().to_string();
    fs::create_dir_all(&dir).with_context(|| format!("failed to make `{dir}`"))?;
    let text = format!(
        "daemon off;\nuser root;\nworker_processes 1;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {dir}/body;\n  proxy_temp_path {dir}/proxy;\n\
         \x20 fastcgi_temp_path {dir}/fastcgi;\n  uwsgi_temp_path {dir}/uwsgi;\n  scgi_temp_path {dir}/scgi;\n\
         \x20 keepalive_requests 100000000;\n  {more}\n  server {{ listen 127.0.0.1:{port}; {serves} }}\n}}\n"
    );
    let conf = cell.write(&format!("{name}.conf"), &text)?;
    cell.start(Program::installed("nginx").named(name).args(["-p", ".", "-c"]).args([conf]).on_cpus(cpus))?;
    cell.wait_for_port(port)
}
