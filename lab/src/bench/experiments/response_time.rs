// SPDX-License-Identifier: Apache-2.0
//! What users of a service feel of a diagnosis: response times while its CPU is busy for 70 % of the time, open loop.
//!
//! The replies are made costly (compressed, many elements, JSON), so that the service is at its limit long before the
//! client is. Each run has a diagnosis between two halves without one. A percentile of response times is a matter of the
//! worst moments, and noisy; so what counts are the requests slower than the 99th percentile of the same run without a
//! diagnosis (one in a hundred, by definition), and stretches of 50 ms in which half of the requests were slow. A host has
//! such moments by itself: one half without a diagnosis is held against the other in the same way, and by how much a
//! diagnosis is more than that is judged too, run by run.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{LOAD_CPU, SERVICE_CPU};
use crate::bench::client::{self, Address, Answer, Ask};
use crate::bench::observed::{Observer, now_ns};
use crate::bench::rounds::Rounds;
use crate::bench::row::{Goal, Row};
use crate::bench::{Bench, Experiment, rounds};
use crate::cell::{Cell, Program};
use crate::scenario::Aim;

const NGINX_PORT: u16 = 19142;
const REDIS_PORT: u16 = 19162;
const NODE_PORT: u16 = 19172;
const CONNECTIONS: usize = 64;
/// Share of the time in which the service's CPU is busy.
const LOAD: f64 = 0.7;
/// Length of a capture, and of the time without one beside it.
const SECONDS: f64 = 8.0;
/// Before the part that counts.
const WARM_SECONDS: f64 = 0.5;
/// What wakewalk takes around its window; the client goes on until it has ended.
const AROUND_SECONDS: f64 = 3.0;
/// How long a diagnosis still counts after its process has ended: the kernel takes programs off in the background.
const AFTERMATH: Duration = Duration::from_millis(250);
/// How near the share of time in which the CPU is busy comes to the load that is wanted, and after so many steps at last.
const NEAR: f64 = 0.02;
const MAX_STEPS: usize = 8;
/// Length of a stretch, and how much slower than usual half of its requests are if it was felt.
const BIN_NS: u64 = 50_000_000;
const FELT: f64 = 3.0;

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "response-time",
    about: "slow requests of nginx (compressing), Redis (LRANGE) and Node.js (JSON) at 70 % load, open loop",
    builds: &[],
    run,
};

/// Where the client runs, and what may be felt then.
struct Place {
    name: &'static str,
    load: &'static [usize],
    /// Percent of the requests; and beyond what the host does by itself.
    slow_at_most: f64,
    slow_more_at_most: f64,
}

static PLACES: [Place; 2] = [
    Place { name: "no CPU to spare", load: LOAD_CPU, slow_at_most: 1.5, slow_more_at_most: 0.5 },
    Place { name: "a CPU to spare", load: SERVICE_CPU, slow_at_most: 1.1, slow_more_at_most: 0.1 },
];

/// What requests felt during a diagnosis, and without one.
pub(super) struct Felt {
    pub(super) slow_pct: f64,
    /// The same of each half without a diagnosis against the other, on average: what the host does by itself.
    slow_alone_pct: f64,
    pub(super) bins: f64,
    /// Of these: before the capture's window, in it, and after it.
    phases: [f64; 3],
    bins_alone: f64,
    p99_us: (f64, f64),
    p50_us: (f64, f64),
    lag_p99_us: (f64, f64),
    per_second: f64,
}

/// A running service.
struct Service {
    pid: u32,
    name: &'static str,
    port: u16,
    request: &'static str,
}

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for start in [nginx, redis, node] {
        for place in &PLACES {
            if bench.stop.check().is_err() {
                return Ok(rows);
            }
            // What one service refuses is no reason to lose what was measured of the others.
            match measure(bench, start, place) {
                Ok(measured) => rows.extend(measured),
                Err(error) => rows.push(Row::refused(place.name, &format!("{error:#}"))),
            }
        }
    }
    Ok(rows)
}

fn measure(bench: &Bench<'_>, start: fn(&mut Cell) -> Result<Service>, place: &Place) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-response", bench.paths, bench.stop)?;
    let service = start(&mut cell)?;
    compare(bench, &mut cell, &service, place)
}

fn nginx(cell: &mut Cell) -> Result<Service> {
    let pages = cell.dir().join("pages");
    fs::create_dir_all(&pages).context("failed to make the folder of pages")?;
    fs::write(pages.join("index.html"), page()).context("failed to write a page")?;
    let conf = cell.write("nginx.conf", &configuration(&cell.dir().display().to_string()))?;
    let pid = cell.start(Program::installed("nginx").args(["-p", ".", "-c"]).args([conf]).on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(NGINX_PORT)?;
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n";
    Ok(Service { pid, name: "nginx", port: NGINX_PORT, request })
}

fn redis(cell: &mut Cell) -> Result<Service> {
    let port = REDIS_PORT.to_string();
    let redis = Program::installed("redis-server").args(["--port", &port, "--bind", "127.0.0.1"]);
    let redis = redis.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
    let pid = cell.start(redis.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(REDIS_PORT)?;
    let fill = Program::installed("redis-cli").args(["-p", &port, "EVAL"]);
    let script = "for i = 1, 500 do redis.call('RPUSH', 'list', 'element ' .. i) end";
    let filled = cell.start(fill.args([script, "0"]).in_group("load"))?;
    cell.finish(filled, Duration::from_secs(10))?;
    Ok(Service { pid, name: "Redis", port: REDIS_PORT, request: "LRANGE list 0 -1\r\n" })
}

fn node(cell: &mut Cell) -> Result<Service> {
    let program = cell.write("items.js", include_str!("../../../bench/items.js"))?;
    let node = Program::installed("node").args([program]).args([NODE_PORT.to_string()]);
    let pid = cell.start(node.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(NODE_PORT)?;
    Ok(Service { pid, name: "Node.js", port: NODE_PORT, request: "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" })
}

fn compare(bench: &Bench<'_>, cell: &mut Cell, service: &Service, place: &Place) -> Result<Vec<Row>> {
    let (limit, ask) = plan(cell, service, place)?;
    let done = rounds::measure(bench.rounds(), cell, &[()], |cell, ()| felt(bench, cell, place, &ask, service.pid))?;
    Ok(rows(&format!("{} at 70 % load, {}", service.name, place.name), place, limit, &done))
}

/// What each of several versions of wakewalk lets the same requests feel, where no CPU is to spare: their rounds, by service.
pub(super) fn versions(bench: &Bench<'_>, versions: &[&Bench<'_>]) -> Result<Vec<(&'static str, Rounds<Felt>)>> {
    let place = &PLACES[0];
    let mut all = Vec::new();
    for start in [nginx, redis, node] {
        if bench.stop.check().is_err() {
            break;
        }
        let mut cell = Cell::open("bench-response", bench.paths, bench.stop)?;
        let service = start(&mut cell)?;
        let (_, ask) = plan(&mut cell, &service, place)?;
        let felt = |cell: &mut Cell, version: &Bench<'_>| felt(version, cell, place, &ask, service.pid);
        all.push((service.name, rounds::measure(bench.rounds(), &mut cell, versions, felt)?));
    }
    Ok(all)
}

/// The service's limit, and what is asked of it at the load that is wanted.
fn plan(cell: &mut Cell, service: &Service, place: &Place) -> Result<(f64, Ask)> {
    let request = cell.write("request", service.request)?;
    let (to, diary, hello) = (Address::Tcp(service.port), cell.dir().join("diary"), Vec::new());
    let ask = Ask { to, rate: 0.0, connections: CONNECTIONS, seconds: 3.0, hello, request, http: false, diary };
    let limit = limit(cell, place, &ask)?;
    Ok((limit, Ask { rate: limit * LOAD, seconds: WARM_SECONDS + 2.0 * SECONDS + AROUND_SECONDS, ..ask }))
}

fn rows(what: &str, place: &Place, limit: f64, done: &Rounds<Felt>) -> Vec<Row> {
    let values = |number: fn(&Felt) -> f64| done.rounds.iter().flatten().map(number).collect::<Vec<f64>>();
    let pairs = |number: fn(&Felt) -> (f64, f64)| done.rounds.iter().flatten().map(number).collect::<Vec<_>>();
    let median = |values: Vec<f64>| crate::bench::statistics::median(&values);
    let [before, within, after] = [0, 1, 2].map(|at| {
        let values = done.rounds.iter().flatten().map(|f| f.phases[at]).collect();
        median(values)
    });
    let alone = format!(
        "{before:.0} before its window, {within:.0} in it, {after:.0} after it; without a diagnosis, in as much time: {:.0}",
        median(values(|f| f.bins_alone))
    );
    let client = format!(
        "limit {limit:.0}/s, answered {:.0}/s; the client was late by p99 {:.0} us without, {:.0} us with",
        median(values(|f| f.per_second)),
        median(values(|f| f.lag_p99_us.0)),
        median(values(|f| f.lag_p99_us.1)),
    );
    let rows = [
        Row::value(format!("{what}: requests slower than 99 % were without"), "%", &values(|f| f.slow_pct))
            .goal(Goal::AtMost(place.slow_at_most)),
        Row::value(
            format!("{what}: the same of one half without a diagnosis, against the other"),
            "%",
            &values(|f| f.slow_alone_pct),
        ),
        Row::value(format!("{what}: by how much that is more"), "points", &values(|f| f.slow_pct - f.slow_alone_pct))
            .goal(Goal::AtMost(place.slow_more_at_most)),
        Row::value(
            format!("{what}: 50 ms with a median of over three times the usual one"),
            "of them",
            &values(|f| f.bins),
        )
        .goal(Goal::AtMost(0.0))
        .note(alone),
        Row::value(format!("{what}: by how many these are more"), "of them", &values(|f| f.bins - f.bins_alone))
            .goal(Goal::AtMost(0.0)),
        Row::ratio(format!("{what}: p99"), "us", &pairs(|f| f.p99_us)).note(client),
        Row::ratio(format!("{what}: p50"), "us", &pairs(|f| f.p50_us)),
    ];
    rows.into_iter().map(|row| done.sign(row)).collect()
}

/// What the service can do, answers a second: as many as come at the load that is wanted, over that. A closed loop tells where
/// to begin. It is no measure itself: it brings requests in bunches, which are cheaper, the more so where both share a CPU.
fn limit(cell: &mut Cell, place: &Place, ask: &Ask) -> Result<f64> {
    let client = start(cell, place, ask)?;
    cell.finish(client, Duration::from_secs(30))?;
    let mut limit = client::read_diary(&ask.diary)?.len() as f64 / ask.seconds;
    for _ in 0..MAX_STEPS {
        let rate = limit * LOAD;
        let busy = busy(cell, place, &Ask { rate, ..ask.clone() })?;
        if (busy - LOAD).abs() <= NEAR {
            break;
        }
        limit = rate / busy;
    }
    Ok(limit)
}

/// Share of the time in which the service's CPU is busy.
fn busy(cell: &mut Cell, place: &Place, ask: &Ask) -> Result<f64> {
    let client = start(cell, place, ask)?;
    cell.stop.sleep(Duration::from_secs_f64(WARM_SECONDS))?;
    let before = jiffies(SERVICE_CPU)?;
    cell.stop.sleep(Duration::from_secs_f64(ask.seconds - 2.0 * WARM_SECONDS))?;
    let after = jiffies(SERVICE_CPU)?;
    cell.finish(client, Duration::from_secs(30))?;
    Ok((after.0 - before.0) / (after.1 - before.1).max(1.0))
}

/// Jiffies in which CPUs were busy, and all of theirs, since the boot.
fn jiffies(cpus: &[usize]) -> Result<(f64, f64)> {
    let stat = fs::read_to_string("/proc/stat").context("failed to read /proc/stat")?;
    let (mut busy, mut all) = (0.0, 0.0);
    for cpu in cpus {
        let name = format!("cpu{cpu} ");
        let line = stat.lines().find_map(|line| line.strip_prefix(&name)).context("/proc/stat lacks a CPU")?;
        // user nice system idle iowait irq softirq steal; guests are in the first two.
        let numbers: Vec<f64> = line.split_whitespace().take(8).filter_map(|number| number.parse().ok()).collect();
        let sum: f64 = numbers.iter().sum();
        (busy, all) = (busy + sum - numbers.iter().skip(3).take(2).sum::<f64>(), all + sum);
    }
    Ok((busy, all))
}

/// A diagnosis between two halves of the same length without one.
fn felt(bench: &Bench<'_>, cell: &mut Cell, place: &Place, ask: &Ask, pid: u32) -> Result<Felt> {
    let client = start(cell, place, ask)?;
    cell.stop.sleep(Duration::from_secs_f64(WARM_SECONDS))?;
    let begin = now_ns()?;
    cell.stop.sleep(Duration::from_secs_f64(SECONDS / 2.0))?;
    let from = now_ns()?;
    let target: Vec<OsString> = Aim::Pid(pid).args().into();
    let ended = Observer::start(bench.paths, cell, &target, SECONDS)?.wait(Duration::from_secs_f64(SECONDS))?;
    cell.stop.sleep(AFTERMATH)?;
    let until = now_ns()?;
    cell.finish(client, Duration::from_secs(30))?;
    // Only now: reading takes CPU time as well.
    let (window, answers) = (ended.window()?, client::read_diary(&ask.diary)?);
    summary(&answers, begin, (from, until), window).context("the client got no answer")
}

fn start(cell: &mut Cell, place: &Place, ask: &Ask) -> Result<u32> {
    let me: PathBuf = env::current_exe().context("failed to find the lab's own binary")?;
    let client = Program::installed(&me.to_string_lossy()).named("client").args(client::command(ask));
    cell.start(client.on_cpus(place.load).in_group("load"))
}

/// Of the answers to what the plan wanted from `begin` on, those between `from` and `until` against the others; the capture's
/// window lies between these.
fn summary(answers: &[Answer], begin: u64, (from, until): (u64, u64), window: (u64, u64)) -> Option<Felt> {
    let counts = answers.iter().filter(|a| begin <= a.wanted_ns);
    let (with, alone): (Vec<&Answer>, Vec<&Answer>) = counts.partition(|a| from <= a.wanted_ns && a.wanted_ns < until);
    let took = |answers: &[&Answer], share| client::percentile(&mut column(answers, |a| a.took_ns), share);
    let lag = |answers: &[&Answer]| client::percentile(&mut column(answers, |a| a.lag_ns), 0.99);
    let (p50, p99) = (took(&alone, 0.5)?, took(&alone, 0.99)?);
    let longer = with.len() as f64 / alone.len() as f64;
    let felt = felt_bins(&with, p50);
    let (before, after): (Vec<&Answer>, Vec<&Answer>) = alone.iter().partition(|a| a.wanted_ns < from);
    let beyond = |half: &[&Answer], other: &[&Answer]| Some(slower_pct(half, took(other, 0.99)?));
    let slow_alone_pct = (beyond(&before, &after)? + beyond(&after, &before)?) / 2.0;
    let phase = |from, until| felt.iter().filter(|bin| (from..until).contains(*bin)).count() as f64;
    Some(Felt {
        slow_pct: slower_pct(&with, p99),
        slow_alone_pct,
        bins: felt.len() as f64,
        phases: [phase(0, window.0), phase(window.0, window.1), phase(window.1, u64::MAX)],
        bins_alone: felt_bins(&alone, p50).len() as f64 * longer,
        p99_us: (p99 / 1e3, took(&with, 0.99)? / 1e3),
        p50_us: (p50 / 1e3, took(&with, 0.5)? / 1e3),
        lag_p99_us: (lag(&alone)? / 1e3, lag(&with)? / 1e3),
        per_second: with.len() as f64 / ((until - from) as f64 / 1e9),
    })
}

/// Percent of the answers that took longer.
fn slower_pct(answers: &[&Answer], than_ns: f64) -> f64 {
    let slower = answers.iter().filter(|a| f64::from(a.took_ns) > than_ns).count();
    slower as f64 * 100.0 / answers.len() as f64
}

fn column(answers: &[&Answer], number: fn(&Answer) -> u32) -> Vec<u32> {
    answers.iter().map(|a| number(a)).collect()
}

/// When stretches began in which half of the requests were slower than `FELT` times `usual_ns`.
fn felt_bins(answers: &[&Answer], usual_ns: f64) -> Vec<u64> {
    let mut bins: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for answer in answers {
        bins.entry(answer.wanted_ns / BIN_NS).or_default().push(answer.took_ns);
    }
    let is_felt = |took: &mut Vec<u32>| client::percentile(took, 0.5).is_some_and(|median| median > FELT * usual_ns);
    bins.iter_mut().filter_map(|(bin, took)| is_felt(took).then_some(bin * BIN_NS)).collect()
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

    const BEGIN: u64 = BIN_NS * 1000;

    fn answers(bins: std::ops::Range<u64>, took_ns: impl Fn(u64) -> u32) -> Vec<Answer> {
        let at = |bin: u64| (0..100).map(move |i| (BIN_NS * bin + i, i));
        bins.flat_map(at).map(|(wanted_ns, i)| Answer { wanted_ns, took_ns: took_ns(i), lag_ns: 2000 }).collect()
    }

    #[test]
    fn slow_are_those_beyond_what_was_usual() {
        let usual = |i: u64| if i == 99 { 9000 } else { 5000 };
        let mut all = answers(0..10, |_| 1_000_000); // warming up
        all.extend(answers(1000..1040, usual));
        all.extend(answers(1040..1059, usual));
        all.extend(answers(1059..1060, |_| 16_000));
        all.extend(answers(1060..1100, usual));
        let felt = summary(&all, BEGIN, (BIN_NS * 1040, BIN_NS * 1060), (BIN_NS * 1042, BIN_NS * 1058)).unwrap();
        assert_eq!((felt.bins, felt.phases, felt.bins_alone), (1.0, [0.0, 0.0, 1.0], 0.0));
        // One bin of twenty, and of each other bin nobody or its slowest.
        assert!((4.9..6.1).contains(&felt.slow_pct), "{}", felt.slow_pct);
        assert_eq!((felt.p50_us, felt.lag_p99_us), ((5.0, 5.0), (2.0, 2.0)));
        assert_eq!(felt.slow_alone_pct, 1.0, "both halves are alike");
        assert!(summary(&all, BEGIN, (1, 2), (1, 2)).is_none(), "nobody asked then");
    }
}
