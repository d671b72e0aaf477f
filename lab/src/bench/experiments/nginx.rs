// SPDX-License-Identifier: Apache-2.0
//! nginx with one worker under wrk at full speed, diagnosed for ten seconds.

use std::fs;
use std::io::{Read, Write};
use std::time::Duration;

use anyhow::{Context, Result};

use super::{LOAD_CPU, PEER_SECONDS, SECONDS, SERVICE_CPU};
use crate::bench::row::Row;
use crate::bench::service::{self, Service, Wanted};
use crate::bench::{Bench, Experiment};
use crate::cell::{Cell, Program};

const PORT: u16 = 19141;
const WHAT: &str = "nginx at saturation";

/// The experiment.
pub static EXPERIMENT: Experiment =
    Experiment { name: "nginx", about: "nginx under wrk at saturation, diagnosed for 10 s", builds: &[], run };

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-nginx", bench.paths, bench.stop)?;
    let service = start(&mut cell)?;
    load(&mut cell)?;
    let mut rows = service::compare(bench, &mut cell, &service, WHAT, (SECONDS, Some(Wanted::CpuAtMost(1.03))))?;
    rows.extend(service::peers(bench, &mut cell, &service, WHAT, PEER_SECONDS)?);
    Ok(rows)
}

fn start(cell: &mut Cell) -> Result<Service> {
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
fn load(cell: &mut Cell) -> Result<()> {
    let url = format!("http://127.0.0.1:{PORT}/index.html");
    let load = Program::installed("wrk").args(["-t1", "-c64", "-d3600s", &url]);
    cell.start(load.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(Duration::from_secs(2))
}

fn worker(main: u32) -> Result<u32> {
    let children = fs::read_to_string(format!("/proc/{main}/task/{main}/children")).context("nginx has ended")?;
    children.split_whitespace().next().and_then(|pid| pid.parse().ok()).context("nginx has no worker")
}

/// Requests answered, by nginx's own page.
fn requests(cell: &Cell) -> Result<u64> {
    let mut page = cell.connect(PORT)?;
    page.write_all(b"GET /status HTTP/1.0\r\n\r\n").context("failed to ask nginx for its counts")?;
    let mut text = String::new();
    page.read_to_string(&mut text).context("failed to read nginx's counts")?;
    parse_status(&text).context("nginx's status page shows no counts")
}

fn parse_status(text: &str) -> Option<u64> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("server accepts"));
    lines.nth(1)?.split_whitespace().nth(2)?.parse().ok()
}

fn configuration(dir: &str) -> String {
    format!(
        "daemon off;\nuser root;\nworker_processes 1;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {dir}/body;\n  proxy_temp_path {dir}/proxy;\n\
         \x20 fastcgi_temp_path {dir}/fastcgi;\n  uwsgi_temp_path {dir}/uwsgi;\n  scgi_temp_path {dir}/scgi;\n\
         \x20 keepalive_requests 1000000000;\n  server {{ listen 127.0.0.1:{PORT}; root {dir}/pages;\n\
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
