// SPDX-License-Identifier: Apache-2.0
//! nginx with one worker under wrk at full speed, diagnosed for ten seconds: over standing connections, over one for each
//! request, and beside very many idle ones.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{LOAD_CPU, PEER_SECONDS, SECONDS, SERVICE_CPU};
use crate::bench::client::{self, Address, Ask};
use crate::bench::row::Row;
use crate::bench::service::{self, Service, Wanted};
use crate::bench::{Bench, Experiment};
use crate::cell::{Cell, Program};

pub(super) const PORT: u16 = 19141;
/// For idle connections to be there.
const LIMIT: Duration = Duration::from_secs(30);
/// Connections that nobody uses: as many as the usual limit of open files leaves room for at either end.
const IDLE: usize = 18_000;

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "nginx",
    about: "nginx under wrk at saturation, diagnosed for 10 s",
    builds: &[],
    run: |bench| {
        run(bench, &Load { what: "nginx at saturation", header: &[], idle: 0, cpu_at_most: 1.03, peers: true })
    },
};

/// A connection for each request: some ten thousand a second.
pub static FRESH: Experiment = Experiment {
    name: "nginx-fresh",
    about: "the same with a connection for each request",
    builds: &[],
    run: |bench| {
        let header = &["-H", "Connection: close"];
        let what = "nginx at saturation, a connection for each request";
        run(bench, &Load { what, header, idle: 0, cpu_at_most: 1.04, peers: true })
    },
};

/// Beside connections that stand idle.
pub static BESIDE_IDLE: Experiment = Experiment {
    name: "nginx-idle",
    about: "the same beside 18,000 idle connections",
    builds: &[],
    run: |bench| {
        let what = "nginx at saturation, beside 18,000 idle connections";
        run(bench, &Load { what, header: &[], idle: IDLE, cpu_at_most: 1.04, peers: false })
    },
};

/// What wrk does, and what is asked of wakewalk then.
struct Load {
    what: &'static str,
    header: &'static [&'static str],
    idle: usize,
    /// CPU time per request, with over without.
    cpu_at_most: f64,
    /// Other tools are put beside.
    peers: bool,
}

fn run(bench: &Bench<'_>, load: &Load) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-nginx", bench.paths, bench.stop)?;
    let service = start(&mut cell)?;
    stand(&mut cell, load.idle)?;
    press(&mut cell, load.header)?;
    let wanted = (SECONDS, Some(Wanted::CpuAtMost(load.cpu_at_most)));
    let mut rows = service::compare(bench, &mut cell, &service, load.what, wanted)?;
    if load.peers {
        rows.extend(service::peers(bench, &mut cell, &service, load.what, PEER_SECONDS)?);
    }
    Ok(rows)
}

pub(super) fn start(cell: &mut Cell) -> Result<Service> {
    let pages = cell.dir().join("pages");
    fs::create_dir_all(&pages).context("failed to make the folder of pages")?;
    fs::write(pages.join("index.html"), "<p>A small page.</p>\n".repeat(50)).context("failed to write a page")?;
    let conf = cell.write("nginx.conf", &configuration(&cell.dir().display().to_string()))?;
    let nginx = Program::installed("nginx").args(["-p", ".", "-c"]).args([conf]);
    let main = cell.start(nginx.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    Ok(Service { pid: worker(main)?, unit: "request", count: requests, cpu_ns: service::process_cpu_ns })
}

/// Adds the load, and waits until it is steady.
pub(super) fn press(cell: &mut Cell, header: &[&str]) -> Result<()> {
    let url = format!("http://127.0.0.1:{PORT}/index.html");
    let load = Program::installed("wrk").args(["-t1", "-c64", "-d3600s"]).args(header.iter().copied()).args([url]);
    cell.start(load.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))
}

/// Opens connections of which one is used a second.
fn stand(cell: &mut Cell, idle: usize) -> Result<()> {
    if idle == 0 {
        return Ok(());
    }
    let me: PathBuf = env::current_exe().context("failed to find the lab's own binary")?;
    let request = cell.write("request", "GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let (to, diary, hello) = (Address::Tcp(PORT), cell.dir().join("diary"), Vec::new());
    let ask = Ask { to, rate: 1.0, connections: idle, seconds: 3600.0, hello, request, http: true, diary };
    let client = Program::installed(&me.to_string_lossy()).named("idle").args(client::command(&ask));
    cell.start(client.on_cpus(LOAD_CPU).in_group("load"))?;
    let stop = cell.stop.clone();
    let standing = stop.poll(LIMIT, || Ok(connections(cell)? >= idle as u64))?;
    ensure!(standing, "the idle connections were not there within {} s", LIMIT.as_secs());
    Ok(())
}

fn worker(main: u32) -> Result<u32> {
    let children = fs::read_to_string(format!("/proc/{main}/task/{main}/children")).context("nginx has ended")?;
    children.split_whitespace().next().and_then(|pid| pid.parse().ok()).context("nginx has no worker")
}

/// Requests answered, by nginx's own page.
pub(super) fn requests(cell: &Cell) -> Result<u64> {
    parse_status(&status(cell)?).context("nginx's status page shows no counts")
}

/// Connections open, likewise.
fn connections(cell: &Cell) -> Result<u64> {
    let text = status(cell)?;
    let active = text.lines().find_map(|line| line.strip_prefix("Active connections:"));
    active.and_then(|number| number.trim().parse().ok()).context("nginx's status page shows no connections")
}

fn status(cell: &Cell) -> Result<String> {
    let mut page = cell.connect(PORT)?;
    page.write_all(b"GET /status HTTP/1.0\r\n\r\n").context("failed to ask nginx for its counts")?;
    let mut text = String::new();
    page.read_to_string(&mut text).context("failed to read nginx's counts")?;
    Ok(text)
}

fn parse_status(text: &str) -> Option<u64> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("server accepts"));
    lines.nth(1)?.split_whitespace().nth(2)?.parse().ok()
}

fn configuration(dir: &str) -> String {
    format!(
        "daemon off;\nuser root;\nworker_processes 1;\nworker_rlimit_nofile 20000;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections 19900; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {dir}/body;\n  proxy_temp_path {dir}/proxy;\n\
         \x20 fastcgi_temp_path {dir}/fastcgi;\n  uwsgi_temp_path {dir}/uwsgi;\n  scgi_temp_path {dir}/scgi;\n\
         \x20 keepalive_requests 1000000000;\n  keepalive_timeout 3600;\n  server {{ listen 127.0.0.1:{PORT}; root {dir}/pages;\n\
         \x20 location = /status {{ stub_status; }} }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_page() {
        let page =
            "HTTP/1.1 200 OK\r\n\r\nActive connections: 2 \nserver accepts handled requests\n 5 5 4242 \nReading: 0\n";
        assert_eq!(parse_status(page), Some(4242));
        assert_eq!(parse_status("404"), None);
    }
}
