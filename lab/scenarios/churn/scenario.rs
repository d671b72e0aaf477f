// SPDX-License-Identifier: Apache-2.0
//! nginx with one worker that closes each connection after its answer, and clients that ask as fast as they can: a good part of
//! its CPU time goes to taking and closing connections. The twin closes them too, and is asked a few hundred times a second:
//! that is harmless.

use std::time::Duration;

use anyhow::Result;

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
    let conf = cell.write("nginx.conf", &configuration(&cell.dir().display().to_string()))?;
    let nginx = Program::installed("nginx").args(["-p", ".", "-c"]).args([conf]);
    cell.start(nginx.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    let connections = cell.draw.number("connections", 64, 16..=200);
    let rate = cell.draw.number("rate", 300, 100..=600);
    match side {
        Side::Fault => full_load(cell, PORT, "/", connections)?,
        Side::Twin => steady_load(cell, PORT, "/", rate, 8)?,
    }
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Port(PORT))
}

fn configuration(dir: &str) -> String {
    format!(
        "daemon off;\nuser root;\nworker_processes 1;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {dir}/body;\n  proxy_temp_path {dir}/proxy;\n\
         \x20 fastcgi_temp_path {dir}/fastcgi;\n  uwsgi_temp_path {dir}/uwsgi;\n  scgi_temp_path {dir}/scgi;\n\
         \x20 keepalive_timeout 0;\n  server {{ listen 127.0.0.1:{PORT}; return 200 \"here\\n\"; }}\n}}\n"
    )
}
