// SPDX-License-Identifier: Apache-2.0
//! Services whose limit is looked for.

use anyhow::Result;

use super::super::{LOAD_CPU, SERVICE_CPU};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::loads::knee::WAKING_US;
use crate::scenarios::THREADED;

const PORT: u16 = 19192;
const STORE: u16 = 19193;
const SOCKET: &str = "orders.sock";

/// What they are built from.
pub(super) static BUILDS: &[Build] = &[
    THREADED,
    Build::C("lab/scenarios/pool-one-core/pool.c", "pool"),
    Build::C("lab/scenarios/loop-sleeps/gauge.c", "gauge"),
    Build::Go("lab", "./bench/seats", "seats"),
    Build::Java("lab/bench/Uneven.java", "uneven.jar"),
    Build::Script("lab/bench/items.js", "items.js"),
    Build::Script("lab/bench/pool.js", "pool.js"),
    Build::Script("lab/scenarios/loop-held/reports.js", "reports.js"),
    Build::Script("lab/scenarios/unix-workers/orders.pl", "orders.pl"),
];

/// One of them.
pub(super) struct Service {
    /// Its name, and what limits it.
    pub(super) name: &'static str,
    port: u16,
    path: &'static str,
    /// The limit that it was given, requests a second; none = nobody knows it, and wrk says something.
    pub(super) limit: Option<f64>,
    /// It refuses what comes close together, so that its limit is one of requests that come evenly.
    pub(super) refuses: bool,
    /// Starts it.
    pub(super) start: fn(&mut Cell) -> Result<()>,
}

impl Service {
    /// Its address.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.path)
    }

    const fn known(name: &'static str, limit: f64, start: fn(&mut Cell) -> Result<()>) -> Self {
        Self { limit: Some(limit), ..Self::unknown(name, start) }
    }

    const fn unknown(name: &'static str, start: fn(&mut Cell) -> Result<()>) -> Self {
        Self { name, port: PORT, path: "/", limit: None, refuses: false, start }
    }
}

/// So many at a time, each for so long.
const fn at_a_time(count: f64, seconds: f64) -> f64 {
    count / (seconds + WAKING_US as f64 / 1e6)
}

/// All of them.
pub(super) static ALL: [Service; 12] = [
    Service { refuses: true, ..Service::known("nginx, a rate limiter of 200/s", 200.0, limited) },
    Service::known("nginx, before a store with a lock for 4 ms", at_a_time(1.0, 4e-3), before_a_store),
    Service::known("C, a lock for 4 ms", at_a_time(1.0, 4e-3), |cell| locked(cell, PORT, SERVICE_CPU)),
    Service::known("C, 10 ms of CPU time and a quota of 30 %", 0.3 / 10e-3, |cell| {
        begin(cell, Program::built("pool").args([&port(PORT), "10000"]).with_quota(30), PORT)
    }),
    Service::known("C, an event loop that sleeps for 5 ms", at_a_time(1.0, 5e-3), |cell| {
        begin(cell, Program::built("gauge").args([&port(PORT), "5000"]), PORT)
    }),
    Service::known("Go, 6 seats for 20 ms", at_a_time(6.0, 20e-3), |cell| {
        begin(cell, Program::built("seats").args([&port(PORT), "6", "20"]), PORT)
    }),
    Service { path: "/items/1", ..Service::known("Java, 32 threads for 5 ms", at_a_time(32.0, 5e-3), java) },
    Service::known("Node.js, a pool of 8 for 20 ms", at_a_time(8.0, 20e-3), |cell| {
        script(cell, "node", &["pool.js", &port(PORT), "8", "20"])
    }),
    Service::known("Node.js, computing for 5 ms", 1.0 / 5e-3, |cell| {
        script(cell, "node", &["reports.js", &port(PORT), "1", "5", "at-once"])
    }),
    Service::known("Perl, 4 processes that ask a store for 10 ms", at_a_time(4.0, 10e-3), processes),
    Service::unknown("nginx, 30 % of a CPU", with_quota),
    Service::unknown("Node.js, small answers", |cell| script(cell, "node", &["items.js", &port(PORT)])),
];

fn port(port: u16) -> String {
    port.to_string()
}

fn begin(cell: &mut Cell, program: Program, port: u16) -> Result<()> {
    cell.start(program.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(port)
}

fn script(cell: &mut Cell, interpreter: &str, args: &[&str]) -> Result<()> {
    cell.bring(args[0])?;
    begin(cell, Program::installed(interpreter).args(args.iter().copied()), PORT)
}

fn java(cell: &mut Cell) -> Result<()> {
    cell.bring("uneven.jar")?;
    let args = ["-Xmx256m", "-Dsun.net.httpserver.nodelay=true", "-cp", "uneven.jar", "Uneven", &port(PORT)];
    begin(cell, Program::installed("java").args(args), PORT)
}

fn locked(cell: &mut Cell, port: u16, cpus: &[usize]) -> Result<()> {
    let store = Program::built("threaded").named("store").args([port.to_string(), "locked".into(), "4000".into()]);
    cell.start(store.on_cpus(cpus))?;
    cell.wait_for_port(port)
}

fn processes(cell: &mut Cell) -> Result<()> {
    cell.bring("orders.pl")?;
    let store = Program::built("threaded").named("store").args([&port(STORE), "unlocked", "10000"]);
    cell.start(store.on_cpus(LOAD_CPU))?;
    cell.wait_for_port(STORE)?;
    let application = Program::installed("perl").args(["orders.pl", SOCKET, &port(STORE), "4"]);
    cell.start(application.on_cpus(SERVICE_CPU))?;
    let lines = format!("server {{ listen 127.0.0.1:{PORT}; location / {{ proxy_pass http://unix:{SOCKET}:; }} }}");
    let nginx = Program::nginx(cell, &lines)?;
    begin(cell, nginx, PORT)
}

fn before_a_store(cell: &mut Cell) -> Result<()> {
    locked(cell, STORE, LOAD_CPU)?;
    let lines = format!(
        "upstream store {{ server 127.0.0.1:{STORE}; keepalive 64; }}
         server {{ listen 127.0.0.1:{PORT}; location / {{ proxy_http_version 1.1; proxy_set_header Connection '';
         proxy_pass http://store; }} }}"
    );
    let nginx = Program::nginx(cell, &lines)?;
    begin(cell, nginx, PORT)
}

fn limited(cell: &mut Cell) -> Result<()> {
    let (zone, rest) = ("limit_req_zone $server_name zone=all:1m rate=200r/s;", "limit_req zone=all burst=5 nodelay;");
    cell.write("index.html", "ok\n")?;
    // A `return` would come before the limit is asked.
    let nginx =
        Program::nginx(cell, &format!("{zone} server {{ listen 127.0.0.1:{PORT}; server_name lab; {rest} root .; }}"))?;
    begin(cell, nginx, PORT)
}

fn with_quota(cell: &mut Cell) -> Result<()> {
    cell.write("index.html", &"<p>A small page.</p>\n".repeat(50))?;
    let nginx = Program::nginx(cell, &format!("server {{ listen 127.0.0.1:{PORT}; root .; }}"))?;
    begin(cell, nginx.with_quota(30), PORT)
}
