// SPDX-License-Identifier: Apache-2.0
//! Services whose limit is looked for.

use anyhow::Result;

use super::super::{LOAD_CPU, SERVICE_CPU, nginx};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenarios::THREADED;

const PORT: u16 = 19192;
const STORE: u16 = 19193;
/// For how long the store holds its lock for each request, us.
const HELD_US: &str = "4000";
/// What the rate limiter lets through, requests a second.
const ALLOWED: f64 = 200.0;
/// Of a CPU, in a hundred, what a service with a quota has.
const QUOTA: u64 = 30;

/// What they are built from.
pub(super) static BUILDS: &[Build] = &[
    THREADED,
    Build::Go("lab", "./digest", "digest"),
    Build::Java("lab/bench/Uneven.java", "uneven.jar"),
    Build::Script("lab/scenarios/interpreter-lock/quotes.py", "quotes.py"),
    Build::Script("lab/bench/items.js", "items.js"),
    Build::Script("lab/bench/pool.js", "pool.js"),
];

/// One of them.
pub(super) struct Service {
    /// Its name, and what limits it.
    pub(super) name: &'static str,
    port: u16,
    path: &'static str,
    /// The limit that it was given, requests a second; none = wrk tells it.
    pub(super) limit: Option<f64>,
    /// Starts it.
    pub(super) start: fn(&mut Cell) -> Result<()>,
}

impl Service {
    /// Its address.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.path)
    }

    const fn new(name: &'static str, start: fn(&mut Cell) -> Result<()>) -> Self {
        Self { name, port: PORT, path: "/", limit: None, start }
    }
}

/// All of them.
pub(super) static ALL: [Service; 10] = [
    Service { port: nginx::PORT, ..Service::new("nginx", |cell| nginx::start(cell).map(drop)) },
    Service::new("nginx, 30 % of a CPU", with_quota),
    Service { limit: Some(ALLOWED), ..Service::new("nginx, a rate limiter", limited) },
    Service::new("nginx, before a store with a lock", before_a_store),
    Service::new("Node.js, computing", |cell| script(cell, "node", &["items.js", &port(PORT)])),
    Service::new("Node.js, a pool of 8 for 10 ms", |cell| script(cell, "node", &["pool.js", &port(PORT), "8", "10"])),
    Service::new("Go, computing", |cell| {
        let listen = format!("127.0.0.1:{PORT}");
        begin(cell, Program::built("digest").args(["-listen", &listen, "-rounds", "2000"]), PORT)
    }),
    Service { path: "/items/1", ..Service::new("Java, 32 threads for 5 ms", java) },
    Service::new("Python, under its interpreter's lock", |cell| {
        script(cell, "/usr/bin/python3", &["quotes.py", &port(PORT), "0"])
    }),
    Service::new("C, a lock for 4 ms", |cell| locked(cell, PORT, SERVICE_CPU)),
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
    let store = Program::built("threaded").named("store").args([port.to_string(), "locked".into(), HELD_US.into()]);
    cell.start(store.on_cpus(cpus))?;
    cell.wait_for_port(port)
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
    let (zone, rest) = (
        format!("limit_req_zone $server_name zone=all:1m rate={ALLOWED:.0}r/s;"),
        "limit_req zone=all burst=5 nodelay;",
    );
    cell.write("index.html", "ok\n")?;
    // A `return` would come before the limit is asked.
    let nginx =
        Program::nginx(cell, &format!("{zone} server {{ listen 127.0.0.1:{PORT}; server_name lab; {rest} root .; }}"))?;
    begin(cell, nginx, PORT)
}

fn with_quota(cell: &mut Cell) -> Result<()> {
    cell.write("index.html", &"<p>A small page.</p>\n".repeat(50))?;
    let nginx = Program::nginx(cell, &format!("server {{ listen 127.0.0.1:{PORT}; root .; }}"))?;
    begin(cell, nginx.with_quota(QUOTA), PORT)
}
