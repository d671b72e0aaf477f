// SPDX-License-Identifier: Apache-2.0
//! An nginx that passes each request on to another one over a connection of its own, as fast as its clients can: a good part of its
//! CPU time goes to making and closing them. The twin keeps them.

use std::time::Duration;

use anyhow::Result;

use super::{LOAD_CPU, SERVICE_CPU, WEBLOAD, full_load, steady_load};
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, NEUTRAL, Scenario, Side};

const PORT: u16 = 19266;
const STORE: u16 = 19267;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "churn-own",
    about: "an nginx that passes each request on over a connection of its own, as fast as its clients can",
    expected: Expected::cause(&["connection-churn"]),
    twin: Some(NEUTRAL),
    builds: &[WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, side: Side) -> Result<Aim> {
    nginx(cell, "store", (STORE, LOAD_CPU), "return 200 \"here\\n\";", "")?;
    let kept = match side {
        Side::Fault => "",
        Side::Twin => "keepalive 64;",
    };
    let upstream = format!("upstream store {{ server 127.0.0.1:{STORE}; {kept} }}");
    let pass = "location / { proxy_pass http://store; proxy_http_version 1.1; proxy_set_header Connection \"\"; }";
    nginx(cell, "front", (PORT, SERVICE_CPU), pass, &upstream)?;
    let connections = cell.draw.number("connections", 32, 16..=64);
    match side {
        Side::Fault => full_load(cell, PORT, "/", connections)?,
        Side::Twin => steady_load(cell, PORT, "/", 300, 8)?,
    }
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Port(PORT))
}

fn nginx(cell: &mut Cell, name: &str, (port, cpus): (u16, &'static [usize]), serves: &str, more: &str) -> Result<()> {
    let dir = cell.dir().join(name).display().to_string();
    std::fs::create_dir_all(&dir)?;
    // A store that closes connections by itself would make both sides the same.
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
