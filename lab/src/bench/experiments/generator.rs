// SPDX-License-Identifier: Apache-2.0
//! `wakewalk load` as a generator: what a request costs it beside wrk, how late it sends, and whether it counts who waits
//! through a service that stands still.

mod others;

use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::LOAD_CPU;
use super::nginx::{self, PORT};
use crate::bench::observed::now_ns;
use crate::bench::row::{Goal, Row};
use crate::bench::{Bench, Experiment, rounds, service};
use crate::cell::{Cell, Program};

const CONNECTIONS: &str = "32";
/// Of a closed loop; what counts is the middle.
const SECONDS: f64 = 4.0;
const MIDDLE: f64 = 2.0;
/// Requests a second at which the generator's lateness is asked.
const BUSY_RATE: f64 = 20_000.0;
/// Requests a second beside a freeze, for how long, and how long the service stands still.
const FROZEN_RATE: f64 = 1000.0;
const FROZEN_SECONDS: f64 = 8.0;
const FREEZE: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(40);

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "generator",
    about: "`wakewalk load`: CPU time per request beside wrk, lateness at 20,000 a second, a service that stands still for 1 s",
    builds: &[],
    run,
};

use others::Other;

#[derive(Clone, Copy)]
enum Generator {
    Other(&'static Other),
    Own,
}

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-generator", bench.paths, bench.stop)?;
    let nginx = nginx::start(&mut cell)?;
    let mut rows = Vec::new();
    for other in others::ALL {
        let row = closed(bench, &mut cell, other);
        rows.push(row.unwrap_or_else(|why| Row::refused(format!("generator: {}", other.name), &format!("{why:#}"))));
    }
    rows.push(late(bench, &mut cell)?);
    for fresh in [false, true] {
        rows.push(frozen(bench, &mut cell, nginx.pid, fresh)?);
    }
    for other in others::ALL {
        let row = frozen_by(bench, &mut cell, nginx.pid, other);
        rows.push(
            row.unwrap_or_else(|why| Row::refused(format!("generator: p99 by {}", other.name), &format!("{why:#}"))),
        );
    }
    Ok(rows)
}

fn url() -> String {
    format!("http://127.0.0.1:{PORT}/index.html")
}

fn own(bench: &Bench<'_>, options: &[&str]) -> Program {
    let program = Program::installed(&bench.paths.wakewalk.to_string_lossy()).named("load").args(["load"]);
    program.args([url()]).args(["--json", "--connections", CONNECTIONS]).args(options.iter().copied()).on_cpus(LOAD_CPU)
}

fn closed(bench: &Bench<'_>, cell: &mut Cell, other: &'static Other) -> Result<Row> {
    other.check()?;
    let done = rounds::measure(bench.rounds(), cell, &[Generator::Other(other), Generator::Own], |cell, which| {
        let length = format!("{SECONDS}s");
        let program = match which {
            Generator::Other(other) => other.fast(SECONDS as u64, &url()).on_cpus(LOAD_CPU),
            Generator::Own => own(bench, &["--rate", "max", "--for", &length]),
        };
        let pid = cell.start(program.in_group("load"))?;
        cell.stop.sleep(Duration::from_secs_f64((SECONDS - MIDDLE) / 2.0))?;
        let before = (service::cpu_ns(pid)?, nginx::requests(cell)?);
        cell.stop.sleep(Duration::from_secs_f64(MIDDLE))?;
        let after = (service::cpu_ns(pid)?, nginx::requests(cell)?);
        cell.finish(pid, LIMIT)?;
        Ok((after.0 - before.0) as f64 / 1e3 / (after.1 - before.1).max(1) as f64)
    })?;
    let name = format!("generator: CPU time per request, over {}'s", other.name);
    let row = Row::ratio(name, "us", &done.pairs(0, 1, |us| *us));
    // The leanest that there is.
    let is_goal = other.name == "wrk";
    Ok(done.sign(if is_goal { row.goal(Goal::AtMost(1.0)) } else { row }))
}

/// Runs ours to its end.
fn answer(bench: &Bench<'_>, cell: &mut Cell, options: &[&str]) -> Result<Value> {
    let pid = cell.start(own(bench, options).in_group("load"))?;
    let text = cell.finish(pid, LIMIT)?;
    serde_json::from_str(&text).context("`wakewalk load --json` printed no JSON")
}

fn number(answer: &Value, path: &str) -> Result<f64> {
    answer.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}: {}", answer["reasons"]))
}

fn late(bench: &Bench<'_>, cell: &mut Cell) -> Result<Row> {
    let rate = BUSY_RATE.to_string();
    let done = rounds::measure(bench.rounds(), cell, &[()], |cell, ()| {
        Ok(number(&answer(bench, cell, &["--rate", &rate, "--for", "3s"])?, "/client/lag/p99")? * 1e6)
    })?;
    let values: Vec<f64> = done.rounds.iter().flatten().copied().collect();
    let row = Row::value(format!("generator: p99 of how late it was at {BUSY_RATE:.0}/s"), "us", &values);
    Ok(done.sign(row.goal(Goal::AtMost(200.0))))
}

/// Percentiles beside the truth: those due while the service stood still wait until it goes on, all others not at all.
fn frozen(bench: &Bench<'_>, cell: &mut Cell, pid: u32, fresh: bool) -> Result<Row> {
    let (rate, length) = (FROZEN_RATE.to_string(), format!("{FROZEN_SECONDS}s"));
    let mut options = vec!["--rate", &rate, "--for", &length, "--arrivals", "uniform"];
    options.extend(fresh.then_some("--new-connections"));
    let done = rounds::measure(bench.rounds(), cell, &[()], |cell, ()| {
        let load = cell.start(own(bench, &options).in_group("load"))?;
        let stood_still = freeze(cell, pid)?;
        let answer: Value = serde_json::from_str(&cell.finish(load, LIMIT)?).context("no JSON")?;
        Ok((truth(0.99, stood_still) * 1e3, number(&answer, "/corrected/p99")? * 1e3))
    })?;
    let what = if fresh { "a connection a request" } else { "standing connections" };
    let pairs: Vec<(f64, f64)> = done.rounds.iter().flatten().copied().collect();
    let row =
        Row::ratio(format!("generator: p99 over the truth, a service that stands still for 1 s, {what}"), "ms", &pairs);
    Ok(done.sign(row.goal(Goal::WithinFactor(1.02))))
}

/// What another one prints of the same.
fn frozen_by(bench: &Bench<'_>, cell: &mut Cell, pid: u32, other: &'static Other) -> Result<Row> {
    other.check()?;
    let done = rounds::measure(bench.rounds(), cell, &[()], |cell, ()| {
        let load = cell.start(other.steady(FROZEN_SECONDS as u64, &url()).on_cpus(LOAD_CPU).in_group("load"))?;
        let stood_still = freeze(cell, pid)?;
        Ok((truth(0.99, stood_still) * 1e3, other.p99_ms(&cell.finish(load, LIMIT)?)?))
    })?;
    let pairs: Vec<(f64, f64)> = done.rounds.iter().flatten().copied().collect();
    let name =
        format!("generator: the p99 that {} prints, over the truth, a service that stands still for 1 s", other.name);
    Ok(done.sign(Row::ratio(name, "ms", &pairs)))
}

/// Stops the service for a while; for how long, s.
fn freeze(cell: &Cell, pid: u32) -> Result<f64> {
    cell.stop.sleep(Duration::from_secs(2))?;
    let service = Pid::from_raw(pid.cast_signed());
    kill(service, Signal::SIGSTOP)?;
    let stopped = now_ns()?;
    let slept = cell.stop.sleep(FREEZE);
    kill(service, Signal::SIGCONT)?;
    slept?;
    Ok((now_ns()? - stopped) as f64 / 1e9)
}

/// Of requests at equal distances, the length that a share of them is under.
fn truth(share: f64, stood_still: f64) -> f64 {
    let waited = stood_still / FROZEN_SECONDS;
    stood_still * (1.0 - (1.0 - share) / waited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundredth_of_all_waits_for_nearly_all_of_a_freeze() {
        assert!((truth(0.99, 1.0) - 0.92).abs() < 1e-9);
        assert!((truth(0.875, 1.0) - 0.0).abs() < 1e-9);
    }
}
