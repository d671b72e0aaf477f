// SPDX-License-Identifier: Apache-2.0
//! The 99th percentile of response times at 70 % of what the service can do, open loop.
//!
//! The replies are made costly (compressed, or many elements), so that the service is at its limit
//! long before the client is.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{LOAD_CPU, SERVICE_CPU};
use crate::bench::client::{self, Address, Answer, Ask};
use crate::bench::observed::{Observer, now_ns};
use crate::bench::row::{Goal, Row};
use crate::bench::{Bench, Experiment, rounds};
use crate::cell::{Cell, Program};
use crate::scenario::Aim;

const NGINX_PORT: u16 = 19142;
const REDIS_PORT: u16 = 19162;
const CONNECTIONS: usize = 64;
/// Share of the service's limit at which it is asked.
const LOAD: f64 = 0.7;
/// Length of a capture.
const SECONDS: f64 = 8.0;
/// Before the part that counts.
const WARM_SECONDS: f64 = 0.5;
/// What wakewalk takes around its window; the client goes on until it has ended.
const AROUND_SECONDS: f64 = 2.5;

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "response-time",
    about: "99th percentile of nginx (compressing) and Redis (LRANGE) at 70 % load, open loop",
    builds: &[],
    run,
};

struct Slice {
    p50_us: f64,
    p99_us: f64,
    lag_p99_us: f64,
    per_second: f64,
}

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = nginx(bench)?;
    if bench.stop.check().is_ok() {
        rows.extend(redis(bench)?);
    }
    Ok(rows)
}

fn nginx(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-response-nginx", bench.paths, bench.stop)?;
    let pages = cell.dir().join("pages");
    fs::create_dir_all(&pages).context("failed to make the folder of pages")?;
    fs::write(pages.join("index.html"), page()).context("failed to write a page")?;
    let conf = cell.write("nginx.conf", &configuration(&cell.dir().display().to_string()))?;
    let pid = cell.start(Program::installed("nginx").args(["-p", ".", "-c"]).args([conf]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(NGINX_PORT)?;
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n";
    compare(bench, &mut cell, pid, "nginx at 70 % load", NGINX_PORT, request)
}

fn redis(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-response-redis", bench.paths, bench.stop)?;
    let port = REDIS_PORT.to_string();
    let redis = Program::installed("redis-server").args(["--port", &port, "--bind", "127.0.0.1"]);
    let redis = redis.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
    let pid = cell.start(redis.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(REDIS_PORT)?;
    let fill = Program::installed("redis-cli").args(["-p", &port, "EVAL"]);
    let script = "for i = 1, 500 do redis.call('RPUSH', 'list', 'element ' .. i) end";
    let filled = cell.start(fill.args([script, "0"]).in_group("load"))?;
    cell.finish(filled, Duration::from_secs(10))?;
    compare(bench, &mut cell, pid, "Redis at 70 % load", REDIS_PORT, "LRANGE list 0 -1\r\n")
}

fn compare(bench: &Bench<'_>, cell: &mut Cell, pid: u32, what: &str, port: u16, request: &str) -> Result<Vec<Row>> {
    let request = cell.write("request", request)?;
    let (to, diary, hello) = (Address::Tcp(port), cell.dir().join("diary"), Vec::new());
    let ask = Ask { to, rate: 0.0, connections: CONNECTIONS, seconds: 3.0, hello, request, http: false, diary };
    let limit = limit(cell, &ask)?;
    let ask = Ask { rate: limit * LOAD, seconds: WARM_SECONDS + SECONDS + AROUND_SECONDS, ..ask };
    let done = rounds::measure(bench.rounds(), cell, &[false, true], |cell, looked| {
        slice(bench, cell, &ask, looked.then_some(pid))
    })?;
    let pairs = |number: fn(&Slice) -> f64| done.pairs(0, 1, number);
    let rate = statistics_note(limit, &pairs(|s| s.per_second), &pairs(|s| s.lag_p99_us));
    let rows = [
        Row::ratio(format!("{what}: p99"), "us", &pairs(|s| s.p99_us)).goal(Goal::AtMost(1.02)).note(rate),
        Row::ratio(format!("{what}: p50"), "us", &pairs(|s| s.p50_us)),
    ];
    Ok(rows.into_iter().map(|row| done.sign(row)).collect())
}

fn statistics_note(limit: f64, rates: &[(f64, f64)], lags: &[(f64, f64)]) -> String {
    let median = |values: Vec<f64>| crate::bench::statistics::median(&values);
    format!(
        "limit {limit:.0}/s, answered {:.0}/s; the client was late by p99 {:.0} us without, {:.0} us with",
        median(rates.iter().map(|p| p.1).collect()),
        median(lags.iter().map(|p| p.0).collect()),
        median(lags.iter().map(|p| p.1).collect()),
    )
}

/// What the service can do, answers a second, closed loop.
fn limit(cell: &mut Cell, ask: &Ask) -> Result<f64> {
    let client = start(cell, ask)?;
    cell.finish(client, Duration::from_secs(30))?;
    let answers = client::read_diary(&ask.diary)?;
    Ok(answers.len() as f64 / ask.seconds)
}

fn slice(bench: &Bench<'_>, cell: &mut Cell, ask: &Ask, target: Option<u32>) -> Result<Slice> {
    let client = start(cell, ask)?;
    cell.stop.sleep(Duration::from_secs_f64(WARM_SECONDS))?;
    let from = now_ns()?;
    let until = match target {
        Some(pid) => {
            let target: Vec<OsString> = Aim::Pid(pid).args().into();
            Observer::start(bench.paths, cell, &target, SECONDS)?.finish(Duration::from_secs_f64(SECONDS))?;
            now_ns()?
        }
        None => from + Duration::from_secs_f64(SECONDS + 1.0).as_nanos() as u64,
    };
    cell.finish(client, Duration::from_secs(30))?;
    let answers = client::read_diary(&ask.diary)?;
    summary(&answers, from, until).context("the client got no answer")
}

fn start(cell: &mut Cell, ask: &Ask) -> Result<u32> {
    let me: PathBuf = env::current_exe().context("failed to find the lab's own binary")?;
    let client = Program::installed(&me.to_string_lossy()).named("client").args(client::command(ask));
    cell.start(client.on_cpus(LOAD_CPU).in_group("load"))
}

/// Of the answers to what the plan wanted between two moments.
fn summary(answers: &[Answer], from: u64, until: u64) -> Option<Slice> {
    let inside = answers.iter().filter(|a| from <= a.wanted_ns && a.wanted_ns < until);
    let (mut took, mut lag): (Vec<u32>, Vec<u32>) = inside.map(|a| (a.took_ns, a.lag_ns)).unzip();
    let us = |values: &mut Vec<u32>, share| Some(client::percentile(values, share)? / 1e3);
    Some(Slice {
        p50_us: us(&mut took, 0.5)?,
        p99_us: us(&mut took, 0.99)?,
        lag_p99_us: us(&mut lag, 0.99)?,
        per_second: took.len() as f64 / ((until - from) as f64 / 1e9),
    })
}

/// Text that does not compress to nothing: words by a fixed sequence.
fn page() -> String {
    let mut state = 1u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + (state >> 24) as u8 % 26)
    };
    (0..1000).map(|word| (0..3 + word % 8).map(|_| letter()).chain([' ']).collect::<String>()).collect()
}

fn configuration(dir: &str) -> String {
    format!(
        "daemon off;\nuser root;\nworker_processes 1;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections 512; }}\n\
         http {{\n  access_log off;\n  gzip on;\n  gzip_comp_level 1;\n  client_body_temp_path {dir}/body;\n\
         \x20 proxy_temp_path {dir}/proxy;\n  fastcgi_temp_path {dir}/fastcgi;\n  uwsgi_temp_path {dir}/uwsgi;\n\
         \x20 scgi_temp_path {dir}/scgi;\n  keepalive_requests 1000000000;\n\
         \x20 server {{ listen 127.0.0.1:{NGINX_PORT}; root {dir}/pages; }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_wanted_in_between_counts() {
        let answer = |wanted_ns, took_ns| Answer { wanted_ns, took_ns, lag_ns: 2000 };
        let mut answers: Vec<Answer> = (0..100).map(|i| answer(1_000_000 + i, 5000)).collect();
        answers.push(answer(10, 1_000_000_000));
        answers.push(answer(2_000_000, 1_000_000_000));
        let s = summary(&answers, 1_000_000, 2_000_000).unwrap();
        assert_eq!((s.p99_us, s.p50_us, s.lag_p99_us), (5.0, 5.0, 2.0));
        assert!(summary(&answers, 3_000_000, 4_000_000).is_none());
    }
}
