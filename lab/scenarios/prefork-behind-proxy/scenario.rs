// SPDX-License-Identifier: Apache-2.0
//! Eight Python processes behind nginx, with room to spare: client, proxy and workers hand each request on over the same
//! two CPUs, some ten microseconds at a time. Much of the time in which a worker wants a CPU, the proxy has it, and nobody
//! waits long enough to feel it.

use std::time::Duration;

use anyhow::Result;

use super::{PYTHON, WEBLOAD};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::{Aim, Expected, Scenario, Side};

const PORT: u16 = 19185;
const WORKERS: u16 = 19186;

/// The scenario.
pub static SCENARIO: Scenario = Scenario {
    name: "prefork-behind-proxy",
    about: "eight Python processes behind nginx at a third of the machine",
    expected: Expected::cause(&["healthy"]),
    twin: None,
    builds: &[Build::Script("lab/scenarios/prefork-behind-proxy/pages.py", "pages.py"), WEBLOAD],
    folders: &["lab/webload"],
    stage,
};

fn stage(cell: &mut Cell, _: Side) -> Result<Aim> {
    cell.bring("pages.py")?;
    let processes = cell.draw.number("processes", 8, 4..=12).to_string();
    cell.start(Program::installed(PYTHON).args(["pages.py", &WORKERS.to_string(), &processes]).named("pages"))?;
    cell.wait_for_port(WORKERS)?;
    let conf = cell.write("nginx.conf", &configuration(&cell.dir().display().to_string()))?;
    cell.start(Program::installed("nginx").args(["-p", ".", "-c"]).args([conf]).in_group("proxy"))?;
    cell.wait_for_port(PORT)?;
    let url = format!("http://127.0.0.1:{PORT}/");
    let rate = cell.draw.number("rate", 1500, 800..=1600).to_string();
    let connections = cell.draw.number("connections", 16, 8..=32).to_string();
    let load = Program::built("webload").args(["-url", &url, "-rate", &rate, "-connections", &connections]);
    cell.start(load.in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))?;
    Ok(Aim::Port(WORKERS))
}

fn configuration(dir: &str) -> String {
    format!(
        "daemon off;\nuser root;\nworker_processes 2;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {dir}/body;\n  proxy_temp_path {dir}/proxy;\n\
         \x20 fastcgi_temp_path {dir}/fastcgi;\n  uwsgi_temp_path {dir}/uwsgi;\n  scgi_temp_path {dir}/scgi;\n\
         \x20 keepalive_requests 1000000;\n  server {{ listen 127.0.0.1:{PORT}; \
         location / {{ proxy_pass http://127.0.0.1:{WORKERS}; }} }}\n}}\n"
    )
}
