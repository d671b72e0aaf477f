// SPDX-License-Identifier: Apache-2.0
//! The limit that `wakewalk load --sweep` finds beside what wrk gets out of the same service in a closed loop: one that the
//! CPU sets, one that the program's own loop sets, one that a pool sets.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::nginx;
use super::{LOAD_CPU, SERVICE_CPU};
use crate::bench::row::{Goal, Row};
use crate::bench::{Bench, Experiment, rounds};
use crate::cell::{Cell, Program};

const PORT: u16 = 19192;
const CONNECTIONS: &str = "64";
/// Of the limit: where a sweep begins and where it ends at the latest.
const FROM: f64 = 0.06;
const TO: f64 = 2.5;
/// A sweep has some twenty loads of two seconds, and what they leave undone is waited for.
const LIMIT: Duration = Duration::from_secs(180);

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "knee",
    about: "the limits of nginx, of a Node.js service that computes and of one with a pool, by `wakewalk load --sweep` and by wrk",
    builds: &[],
    run,
};

/// A service: its name, its port, and how it is started.
type Service = (&'static str, u16, fn(&mut Cell) -> Result<()>);

static SERVICES: [Service; 3] = [
    ("nginx", nginx::PORT, |cell| nginx::start(cell).map(drop)),
    ("Node.js, computing", PORT, |cell| node(cell, "items.js", include_str!("../../../bench/items.js"), &[])),
    ("Node.js, a pool of 8 for 10 ms", PORT, |cell| {
        node(cell, "pool.js", include_str!("../../../bench/pool.js"), &["8", "10"])
    }),
];

fn node(cell: &mut Cell, name: &str, text: &str, more: &[&str]) -> Result<()> {
    let program = cell.write(name, text)?;
    let node = Program::installed("node").args([program]).args([PORT.to_string()]).args(more.iter().copied());
    cell.start(node.on_cpus(SERVICE_CPU))?;
    cell.wait_for_port(PORT)
}

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, port, start) in SERVICES {
        if bench.stop.check().is_err() {
            break;
        }
        match measure(bench, port, start) {
            Ok(done) => {
                let pairs: Vec<(f64, f64)> = done.rounds.iter().flatten().copied().collect();
                let row = Row::ratio(
                    format!("knee of {name}: the highest load that was sustained, over wrk's rate"),
                    "/s",
                    &pairs,
                );
                rows.push(done.sign(row.goal(Goal::WithinFactor(1.05))));
            }
            Err(error) => rows.push(Row::refused(name, &format!("{error:#}"))),
        }
    }
    Ok(rows)
}

/// Answers a second: wrk's, and the highest load that was sustained.
fn measure(bench: &Bench<'_>, port: u16, start: fn(&mut Cell) -> Result<()>) -> Result<rounds::Rounds<(f64, f64)>> {
    let mut cell = Cell::open("bench-knee", bench.paths, bench.stop)?;
    start(&mut cell)?;
    rounds::measure((bench.pairs, bench.stop), &mut cell, &[()], |cell, ()| {
        let url = format!("http://127.0.0.1:{port}/");
        let wrk = Program::installed("wrk").args(["-t1", "-c", CONNECTIONS, "-d4s"]).args([&url]);
        let wrk = cell.start(wrk.on_cpus(LOAD_CPU).in_group("load"))?;
        let limit = requests_a_second(&cell.finish(wrk, LIMIT)?).context("wrk printed no rate")?;
        let range = format!("{:.0}..{:.0}", limit * FROM, limit * TO);
        let own =
            Program::installed(&bench.paths.wakewalk.to_string_lossy()).named("load").args(["load", &url, "--json"]);
        let own = own.args(["--connections", CONNECTIONS, "--for", "2s", "--timeout", "2s", "--sweep", &range]);
        let own = cell.start(own.on_cpus(LOAD_CPU).in_group("load"))?;
        let swept: Value = serde_json::from_str(&cell.finish(own, LIMIT)?).context("no JSON")?;
        let sustained = swept.pointer("/knee/sustained").and_then(Value::as_f64);
        Ok((limit, sustained.with_context(|| format!("no limit was found: {}", swept["findings"]))?))
    })
}

fn requests_a_second(printed: &str) -> Option<f64> {
    printed.lines().find_map(|line| line.strip_prefix("Requests/sec:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wrk_prints() {
        assert_eq!(requests_a_second("  9 requests in 2s\nRequests/sec:   1973.12\nTransfer/sec: 1"), Some(1973.12));
        assert_eq!(requests_a_second("unable to connect"), None);
    }
}
