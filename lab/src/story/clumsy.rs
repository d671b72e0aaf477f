// SPDX-License-Identifier: Apache-2.0
//! Story 001: the benchmark of Node.js that collapsed on TCP SYNs.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Teller;
use crate::builds;
use crate::cell::Cell;
use crate::loader::Place;
use crate::loads::ceiling;
use crate::loads::nat_ceiling::{self, clients_command};
use crate::paths::Paths;
use crate::scenarios::LOAD_CPU;
use crate::score::aligned;
use crate::stop::Stop;

/// Connections that the packet filter of the story's host can track: fewer than one address has even local ports, which are all
/// that Linux takes by itself.
const ENTRIES: u64 = 12_000;
/// What ab is asked for.
const AB: &str = "-t 9 -n 9999999";
/// The same of each of several clients.
const AB_EACH: &str = "ab -q -c 33 -t 9 -n 9999999";
/// ab looks at its clock only when something comes, and TCP waits longer each time.
const LIMIT: Duration = Duration::from_secs(90);

/// Tells the story and returns what was printed.
pub fn tell(paths: &Paths, stop: &Stop) -> Result<String> {
    builds::build(ceiling::BUILDS, paths)?;
    builds::build(nat_ceiling::BUILDS, paths)?;
    let mut teller = Teller(String::new());
    teller.say("1. The benchmark's claim, and the doubt: ab with 100 clients, a connection for each request");
    let (claim, doubt) = benchmark(Some(ENTRIES), 100, &[], paths, stop)?;
    teller.say(claims(&claim));
    teller.say(doubt);

    teller.say("2. Is it a ceiling? The same with 333 clients");
    let more = benchmark_as_json(Some(ENTRIES), 333, paths, stop)?;
    teller.say(reasons(&more, &["ceiling", "phases"]));

    teller.say("3. The fix: room for all connections in the packet filter's table (nf_conntrack_max)");
    let fixed = benchmark_as_json(None, 100, paths, stop)?;
    teller.say(before_and_after(&benchmark_as_json(Some(ENTRIES), 100, paths, stop)?, &fixed));

    teller.say("4. The clash of 2014, as it is met on Linux: three clients behind one address, and a strict gateway");
    teller.say(behind_a_gateway(3, AB_EACH, &[], paths, stop)?);
    teller.say("5. The way out: one client with as many connections, or three that keep theirs");
    let mut rows = vec![["clients", "answers", "verdict", "reasons"].map(String::from)];
    for (clients, generator) in [(3, AB_EACH), (1, "ab -q -c 99 -t 9 -n 9999999"), (3, "wrk -t1 -c33 -d9s")] {
        let said = behind_a_gateway(clients, generator, &["--json"], paths, stop)?;
        rows.push(row(&format!("{clients} x {generator}"), &serde_json::from_str(&said).context("no JSON")?));
    }
    teller.say(aligned(&rows));
    Ok(teller.0)
}

/// What ab printed, and what wakewalk said of it.
fn benchmark(
    entries: Option<u64>,
    clients: u32,
    more: &[&str],
    paths: &Paths,
    stop: &Stop,
) -> Result<(String, String)> {
    let name = "story-001";
    let mut cell = Cell::open(name, paths, stop)?;
    let pid = ceiling::serve(&mut cell, entries)?;
    let diagnose = format!("--diagnose={pid}");
    let command = format!("ab -q -c {clients} {AB} http://127.0.0.1:{}/", ceiling::PORT);
    let args: Vec<&str> = more.iter().copied().chain([diagnose.as_str(), "--"]).chain(command.split(' ')).collect();
    let place = Place { far: false, cpus: LOAD_CPU.to_vec() };
    let said = place.run(&mut cell, paths, &args, LIMIT)?;
    let printed = fs::read_to_string(paths.logs(name).join("load.err")).context("failed to read what ab printed")?;
    Ok((printed, said))
}

fn benchmark_as_json(entries: Option<u64>, clients: u32, paths: &Paths, stop: &Stop) -> Result<Value> {
    let (_, said) = benchmark(entries, clients, &["--json"], paths, stop)?;
    serde_json::from_str(&said).context("wakewalk printed no JSON")
}

/// What ab claims, of all that it prints.
fn claims(printed: &str) -> String {
    let lines = ["Requests per second", "Time per request", "  50%", "  99%", " 100%", "Failed requests"];
    let claims = printed.lines().filter(|line| lines.iter().any(|claim| line.starts_with(claim)));
    let claims: Vec<&str> = claims.collect();
    let last = printed.lines().last().unwrap_or("nothing");
    format!("ab says:\n{}", if claims.is_empty() { last.to_string() } else { claims.join("\n") })
}

fn reasons(said: &Value, codes: &[&str]) -> String {
    let all = said["reasons"].as_array().into_iter().flatten();
    let wanted = all.filter(|reason| codes.iter().any(|code| reason["code"] == *code));
    let lines: Vec<String> = wanted.map(|reason| format!("{}: {}", reason["code"], reason["sentence"])).collect();
    lines.join("\n").replace('"', "")
}

fn before_and_after(before: &Value, after: &Value) -> String {
    let rows = [("full table", before), ("room for all", after)].map(|(label, said)| row(label, said));
    aligned(&[["", "answers", "verdict", "reasons"].map(String::from)].into_iter().chain(rows).collect::<Vec<_>>())
}

fn row(label: &str, said: &Value) -> [String; 4] {
    let reasons = said["reasons"].as_array().into_iter().flatten().filter_map(|reason| reason["code"].as_str());
    let text = |field: &str| said[field].as_str().unwrap_or("-").to_string();
    [label.into(), said["answered"].to_string(), text("verdict"), reasons.collect::<Vec<_>>().join(", ")]
}

fn behind_a_gateway(clients: u32, generator: &str, more: &[&str], paths: &Paths, stop: &Stop) -> Result<String> {
    let mut cell = Cell::open("story-001-gateway", paths, stop)?;
    let pid = nat_ceiling::serve(&mut cell)?;
    let (diagnose, command) = (format!("--diagnose={pid}"), clients_command(clients, generator));
    let args: Vec<&str> = more.iter().copied().chain([diagnose.as_str(), "--"]).chain(command.split(' ')).collect();
    Place { far: true, cpus: Vec::new() }.run(&mut cell, paths, &args, LIMIT)
}
