// SPDX-License-Identifier: Apache-2.0
//! The limit that `wakewalk load --sweep` finds, of ten services in six languages, beside the one that each was given by its only
//! thread, a quota, a lock, a pool, a rate limiter, or whom it asks. And of two whose limit nobody knows, beside what wrk gets out
//! of them: which is another load, because a service that always has 64 requests before it reads and wakes less for each.

mod services;

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::LOAD_CPU;
use crate::bench::row::{Goal, Row};
use crate::bench::{Bench, Experiment, rounds};
use crate::cell::{Cell, Program};
use services::{ALL, Service};

const CONNECTIONS: &str = "64";
/// Of the limit: where a sweep begins and where it ends at the latest.
const FROM: f64 = 0.12;
const TO: f64 = 2.5;
/// A sweep has some twenty loads of three seconds, and what they leave undone is waited for.
const LIMIT: Duration = Duration::from_secs(180);

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "knee",
    about: "the limits of twelve services by `wakewalk load --sweep`, and as they were made, or by wrk",
    builds: services::BUILDS,
    run,
};

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for service in &ALL {
        if bench.stop.check().is_err() {
            break;
        }
        let (name, other) =
            (service.name, if service.limit.is_some() { "the one it was made for" } else { "wrk's rate" });
        match measure(bench, service) {
            Ok(done) => {
                let pairs: Vec<(f64, f64)> = done.rounds.iter().flatten().copied().collect();
                let what = format!("knee of {name}: what a sweep says that it answers at most, over {other}");
                let row = Row::ratio(what, "/s", &pairs);
                rows.push(done.sign(if service.limit.is_some() { row.goal(Goal::WithinFactor(1.05)) } else { row }));
            }
            Err(error) => rows.push(Row::refused(name, &format!("{error:#}"))),
        }
    }
    Ok(rows)
}

/// Answers a second: what it was made for, or wrk's; and what a sweep says.
fn measure(bench: &Bench<'_>, service: &Service) -> Result<rounds::Rounds<(f64, f64)>> {
    let mut cell = Cell::open("bench-knee", bench.paths, bench.stop)?;
    (service.start)(&mut cell)?;
    if service.limit.is_none() {
        by_wrk(&mut cell, &service.url())?; // what is compiled as it runs is slow at first
    }
    rounds::measure((bench.pairs, bench.stop), &mut cell, &[()], |cell, ()| {
        let url = service.url();
        let before = service.limit.map_or_else(|| by_wrk(cell, &url), Ok)?;
        let range = format!("{:.0}..{:.0}", before * FROM, before * TO);
        let own =
            Program::installed(&bench.paths.wakewalk.to_string_lossy()).named("load").args(["load", &url, "--json"]);
        let own = own.args(if service.refuses { &["--arrivals", "uniform"][..] } else { &[] });
        let own = own.args(["--connections", CONNECTIONS, "--for", "3s", "--timeout", "2s", "--sweep", &range]);
        let own = cell.start(own.on_cpus(LOAD_CPU).in_group("load"))?;
        let swept: Value = serde_json::from_str(&cell.finish(own, LIMIT)?).context("no JSON")?;
        // Whatever disturbs a host makes a closed loop slower: the better one of two is nearer to the truth.
        let limit = before.max(service.limit.map_or_else(|| by_wrk(cell, &url), Ok)?);
        let answered = swept.pointer("/knee/answered").and_then(Value::as_f64);
        Ok((limit, answered.with_context(|| format!("no limit was found: {}", swept["findings"]))?))
    })
}

fn by_wrk(cell: &mut Cell, url: &str) -> Result<f64> {
    let wrk = Program::installed("wrk").args(["-t1", "-c", CONNECTIONS, "-d4s", url]);
    let wrk = cell.start(wrk.on_cpus(LOAD_CPU).in_group("load"))?;
    requests_a_second(&cell.finish(wrk, LIMIT)?).context("wrk printed no rate")
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
