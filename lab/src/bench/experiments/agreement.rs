// SPDX-License-Identifier: Apache-2.0
//! Response times as the kernel saw them, beside those of the service's own client.
//!
//! The services answer after 5 ms, and every twenty-fifth request after 25, so that both percentiles that are compared lie
//! well inside what they do; Redis computes instead, and requests queue before it. The client counts from its write: how
//! late it was with that by its plan is its own affair, and stands in the note. What it adds beyond is the way there and
//! back, and its own wakeup.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{LOAD_CPU, SERVICE_CPU};
use crate::bench::client::{self, Address, Answer, Ask};
use crate::bench::observed::{Observed, Observer};
use crate::bench::rounds::{self, Rounds};
use crate::bench::row::{Goal, Row};
use crate::bench::{Bench, Experiment};
use crate::builds::Build;
use crate::cell::{Cell, Program};
use crate::scenario::Aim;

const PORT: u16 = 19182;
const UPSTREAM_PORT: u16 = 19183;
const CONNECTIONS: usize = 32;
const SECONDS: f64 = 6.0;
/// Before the capture, and for as long as wakewalk may take around its window.
const WARM: Duration = Duration::from_secs(1);
const AROUND_SECONDS: f64 = 4.0;
/// A recording tells percentiles within 3 %, and the client measures a little more.
const WITHIN: f64 = 1.05;

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "agreement",
    about: "response times as the kernel saw them, beside their client's: nginx, Node.js, Go, Java, Redis",
    builds: &[Build::Go("lab", "./bench/uneven", "uneven"), Build::Java("lab/bench/Uneven.java", "uneven.jar")],
    run,
};

/// A service, how it is asked, and how often a second.
struct Service {
    name: &'static str,
    start: fn(&mut Cell) -> Result<u32>,
    request: &'static str,
    http: bool,
    rate: f64,
}

const WEB: &str = "GET /items/~~~~ HTTP/1.1\r\nHost: localhost\r\n\r\n";
const SCRIPT: &str = "EVAL \"for i = 1, tonumber(ARGV[1]) % 25 == 0 and 2500000 or 500000 do end return 1\" 0 ~~~~\r\n";

static SERVICES: [Service; 5] = [
    Service { name: "nginx", start: nginx, request: WEB, http: true, rate: 200.0 },
    Service { name: "Node.js", start: |cell| node(cell, PORT, SERVICE_CPU), request: WEB, http: true, rate: 400.0 },
    Service { name: "Go", start: go, request: WEB, http: true, rate: 400.0 },
    Service { name: "Java", start: java, request: WEB, http: true, rate: 400.0 },
    Service { name: "Redis", start: redis, request: SCRIPT, http: false, rate: 60.0 },
];

/// Percentiles, client's and the kernel's, ms, and how late the client was.
struct Seen {
    p50: (f64, f64),
    p99: (f64, f64),
    lag_p99_ms: f64,
}

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for service in &SERVICES {
        if bench.stop.check().is_err() {
            break;
        }
        // What one service refuses is no reason to lose what was measured of the others.
        match measure(bench, service) {
            Ok(measured) => rows.extend(measured),
            Err(error) => rows.push(Row::refused(service.name, &format!("{error:#}"))),
        }
    }
    Ok(rows)
}

fn measure(bench: &Bench<'_>, service: &Service) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-agreement", bench.paths, bench.stop)?;
    let pid = (service.start)(&mut cell)?;
    let request = cell.write("request", service.request)?;
    let seconds = WARM.as_secs_f64() + SECONDS + AROUND_SECONDS;
    let (to, diary, http) = (Address::Tcp(PORT), cell.dir().join("diary"), service.http);
    let ask =
        Ask { to, rate: service.rate, connections: CONNECTIONS, seconds, hello: Vec::new(), request, http, diary };
    let done = rounds::measure(bench.rounds(), &mut cell, &[()], |cell, ()| compared(bench, cell, &ask, pid))?;
    Ok(judged(service, &done))
}

fn judged(service: &Service, done: &Rounds<Seen>) -> Vec<Row> {
    let pairs = |number: fn(&Seen) -> (f64, f64)| done.rounds.iter().flatten().map(number).collect::<Vec<_>>();
    let lag: Vec<f64> = done.rounds.iter().flatten().map(|seen| seen.lag_p99_ms).collect();
    let note = format!(
        "{:.0} requests a second; the client was late by p99 {:.2} ms",
        service.rate,
        crate::bench::statistics::median(&lag)
    );
    let row = |percentile: &str, number: fn(&Seen) -> (f64, f64)| {
        let name = format!("{}: {percentile} as the kernel saw it, over its client's", service.name);
        done.sign(Row::ratio(name, "ms", &pairs(number)).goal(Goal::WithinFactor(WITHIN)).note(note.clone()))
    };
    vec![row("p50", |seen| seen.p50), row("p99", |seen| seen.p99)]
}

fn compared(bench: &Bench<'_>, cell: &mut Cell, ask: &Ask, pid: u32) -> Result<Seen> {
    let me: PathBuf = env::current_exe().context("failed to find the lab's own binary")?;
    let client = Program::installed(&me.to_string_lossy()).named("client").args(client::command(ask));
    let client = cell.start(client.on_cpus(LOAD_CPU).in_group("load"))?;
    cell.stop.sleep(WARM)?;
    let observer = Observer::start(bench.paths, cell, &Aim::Pid(pid).args(), SECONDS)?;
    let observed = observer.finish(Duration::from_secs_f64(SECONDS))?;
    cell.finish(client, Duration::from_secs(30))?;
    beside(&observed, &client::read_diary(&ask.diary)?)
}

/// The client's percentiles of what it sent in the observed window, beside those of the verdict.
fn beside(observed: &Observed, answers: &[Answer]) -> Result<Seen> {
    let window = observed.from_ns..observed.until_ns;
    let sent = |answer: &&Answer| window.contains(&(answer.wanted_ns + u64::from(answer.lag_ns)));
    let answers: Vec<&Answer> = answers.iter().filter(sent).collect();
    let own = |share| percentile(&answers, share, |answer| answer.took_ns - answer.lag_ns);
    let busiest = observed.verdict.requests.iter().filter(|r| r.is_accepted()).max_by_key(|r| r.exchanges);
    let seen = &busiest.context("the verdict has no requests")?.seconds;
    ensure!(seen.p50 > 0.0, "the verdict has no response times");
    Ok(Seen {
        p50: (own(0.5)?, seen.p50 * 1e3),
        p99: (own(0.99)?, seen.p99 * 1e3),
        lag_p99_ms: percentile(&answers, 0.99, |answer| answer.lag_ns)?,
    })
}

/// Of one number of each answer, ms.
fn percentile(answers: &[&Answer], share: f64, number: fn(&Answer) -> u32) -> Result<f64> {
    let mut numbers: Vec<u32> = answers.iter().map(|answer| number(answer)).collect();
    Ok(client::percentile(&mut numbers, share).context("the client got no answer")? / 1e6)
}

/// A proxy before the Node service: what it waits for is its upstream's.
fn nginx(cell: &mut Cell) -> Result<u32> {
    node(cell, UPSTREAM_PORT, LOAD_CPU)?;
    let dir = cell.dir().display().to_string();
    let conf = cell.write("nginx.conf", &proxy(&dir))?;
    let pid = cell.start(Program::installed("nginx").args(["-p", ".", "-c"]).args([conf]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    Ok(pid)
}

fn proxy(dir: &str) -> String {
    format!(
        "daemon off;\nuser root;\nworker_processes 1;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {dir}/body;\n\
         \x20 proxy_temp_path {dir}/proxy;\n  fastcgi_temp_path {dir}/fastcgi;\n  uwsgi_temp_path {dir}/uwsgi;\n\
         \x20 scgi_temp_path {dir}/scgi;\n  keepalive_requests 1000000000;\n\
         \x20 upstream items {{ server 127.0.0.1:{UPSTREAM_PORT}; keepalive 64; }}\n\
         \x20 server {{\n    listen 127.0.0.1:{PORT};\n    location / {{\n      proxy_pass http://items;\n\
         \x20     proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n    }}\n  }}\n}}\n"
    )
}

fn node(cell: &mut Cell, port: u16, cpus: &'static [usize]) -> Result<u32> {
    let program = cell.write("uneven.js", include_str!("../../../bench/uneven.js"))?;
    let pid = cell.start(Program::installed("node").args([program]).args([port.to_string()]).on_cpus(cpus))?;
    cell.wait_for_port(port)?;
    Ok(pid)
}

fn go(cell: &mut Cell) -> Result<u32> {
    let pid = cell.start(Program::built("uneven").args([PORT.to_string()]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    Ok(pid)
}

fn java(cell: &mut Cell) -> Result<u32> {
    cell.bring("uneven.jar")?;
    let args = ["-Xmx256m", "-Dsun.net.httpserver.nodelay=true", "-cp", "uneven.jar", "Uneven"];
    let java = Program::installed("java").named("service").args(args).args([PORT.to_string()]);
    let pid = cell.start(java.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    Ok(pid)
}

fn redis(cell: &mut Cell) -> Result<u32> {
    let redis = Program::installed("redis-server").args(["--port", &PORT.to_string(), "--bind", "127.0.0.1"]);
    let redis = redis.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
    let pid = cell.start(redis.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)?;
    Ok(pid)
}
