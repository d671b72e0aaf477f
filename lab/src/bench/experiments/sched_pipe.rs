// SPDX-License-Identifier: Apache-2.0
//! `perf bench sched pipe`: two processes that do nothing but wake each other, the worst case for
//! programs on the scheduler's hooks. Pinned to one CPU: across two, the wakeup hides every cost.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::observed::{Observed, Observer};
use crate::bench::peers::{self, Peer};
use crate::bench::row::{Goal, Row};
use crate::bench::{Bench, Experiment, rounds, service};
use crate::cell::{Cell, Program};
use crate::scenario::Aim;

/// Length of one run alone.
const RUN_SECONDS: f64 = 2.5;
/// The capture beside it: longer than a run.
const BESIDE_SECONDS: f64 = 6.0;
/// The capture that begins with the run ends with it.
const AROUND_SECONDS: f64 = 30.0;
/// Its name, as the kernel knows its processes.
const COMM: &str = "sched-pipe";
/// The CPU that both of its processes stay on.
const CPU: &str = "1";

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "sched-pipe",
    about: "perf bench sched pipe on one CPU: while something else is diagnosed, diagnosed itself, under other tools",
    builds: &[],
    run,
};

#[derive(Clone, Copy)]
enum Side {
    Alone,
    Bystander,
    Target,
    Peer(&'static Peer),
}

#[derive(Default)]
struct Run {
    us_per_round: f64,
    rounds: f64,
    observed: Option<Observed>,
    refusal: Option<String>,
}

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-sched-pipe", bench.paths, bench.stop)?;
    let idle = cell.start(Program::installed("sleep").args(["infinity"]))?;
    let loops = RUN_SECONDS * 1e6 / alone(&cell, 100_000.0)?.us_per_round;
    let mut rows = wakewalk(bench, &mut cell, idle, loops)?;
    let peers: Vec<&'static Peer> = bench.peers().iter().filter(|peer| peer.starts_programs()).collect();
    let sides: Vec<Side> = std::iter::once(Side::Alone).chain(peers.iter().copied().map(Side::Peer)).collect();
    let done =
        rounds::measure(bench.peer_rounds(), &mut cell, &sides, |cell, side| one(bench, cell, side, idle, loops))?;
    for (at, peer) in peers.iter().enumerate() {
        let name = format!("sched pipe: {}", peer.name);
        let refused = done.rounds.iter().find_map(|round| round[at + 1].refusal.as_deref());
        rows.push(match refused {
            Some(why) => Row::refused(name, why),
            None => done.sign(Row::ratio(name, "us", &done.pairs(0, at + 1, |r| r.us_per_round))),
        });
    }
    Ok(rows)
}

fn wakewalk(bench: &Bench<'_>, cell: &mut Cell, idle: u32, loops: f64) -> Result<Vec<Row>> {
    let sides = [Side::Alone, Side::Bystander, Side::Target];
    let done = rounds::measure(bench.fine_rounds(), cell, &sides, |cell, side| one(bench, cell, side, idle, loops))?;
    let time = |with| done.pairs(0, with, |r| r.us_per_round);
    let mut rows = vec![
        Row::ratio("sched pipe, as a bystander: time per round", "us", &time(1)).goal(Goal::AtMost(1.12)),
        Row::ratio("sched pipe, as the target: time per round", "us", &time(2)).goal(Goal::AtMost(1.20)),
    ];
    let told: Vec<(f64, f64)> = done.rounds.iter().filter_map(|round| told(&round[0], &round[2])).collect();
    let name = "sched pipe, as the target: printed cost of the capture against measured";
    rows.push(Row::ratio(name, "s", &told).goal(Goal::WithinFactor(1.5)));
    let seen: Vec<&Observed> = done.rounds.iter().filter_map(|round| round[2].observed.as_ref()).collect();
    rows.extend(service::own_cost("sched pipe, as the target", &seen));
    Ok(rows.into_iter().map(|row| done.sign(row)).collect())
}

/// The capture's cost from outside, which is its process's CPU time and what the observed side lost,
/// and as the verdict prints it.
fn told(alone: &Run, with: &Run) -> Option<(f64, f64)> {
    let observed = with.observed.as_ref()?;
    let lost_s = (with.us_per_round - alone.us_per_round) * with.rounds / 1e6;
    Some((observed.cpu_s + lost_s.max(0.0), observed.verdict.cost.cpu_seconds))
}

fn one(bench: &Bench<'_>, cell: &Cell, side: Side, idle: u32, loops: f64) -> Result<Run> {
    match side {
        Side::Alone => alone(cell, loops),
        Side::Bystander => {
            let target: Vec<OsString> = Aim::Pid(idle).args().into();
            let mut observer = Observer::start(bench.paths, cell, &target, BESIDE_SECONDS)?;
            observer.wait_until_observing()?;
            let run = alone(cell, loops)?;
            Ok(Run { observed: Some(observer.finish(Duration::from_secs_f64(BESIDE_SECONDS))?), ..run })
        }
        Side::Target => {
            let mut target: Vec<OsString> = vec!["--".into()];
            target.extend(program(loops)?);
            let observer = Observer::start(bench.paths, cell, &target, AROUND_SECONDS)?;
            let observed = observer.finish(Duration::from_secs_f64(AROUND_SECONDS))?;
            let us_per_round = parse(&observed.said).context("perf bench printed no time under wakewalk")?;
            Ok(Run { us_per_round, rounds: loops, observed: Some(observed), refusal: None })
        }
        Side::Peer(peer) => {
            let said = output(cell, &peer.around(&program(loops / f64::from(peer.slows))?, COMM))?;
            Ok(match parse(&said) {
                Some(us_per_round) => Run { us_per_round, ..Run::default() },
                None => Run {
                    refusal: Some(peers::refusal(&said).unwrap_or_else(|| "printed nothing".into())),
                    ..Run::default()
                },
            })
        }
    }
}

fn alone(cell: &Cell, loops: f64) -> Result<Run> {
    let said = output(cell, &program(loops)?)?;
    let us_per_round = parse(&said).with_context(|| format!("perf bench printed no time: {}", said.trim()))?;
    Ok(Run { us_per_round, rounds: loops, ..Run::default() })
}

/// The benchmark, pinned by a step of the lab's own, so that only it is.
fn program(loops: f64) -> Result<Vec<OsString>> {
    let me = env::current_exe().context("failed to find the lab's own binary")?;
    let mut args: Vec<OsString> = vec![me.into(), "enter".into(), "--cpu".into(), CPU.into(), "--".into()];
    args.extend(["perf", "bench", "sched", "pipe", "-l"].map(Into::into));
    args.push(format!("{loops:.0}").into());
    Ok(args)
}

/// What a command of the cell prints, on either stream.
fn output(cell: &Cell, args: &[OsString]) -> Result<String> {
    let mut command = Command::new(env::current_exe().context("failed to find the lab's own binary")?);
    command.arg("enter").arg("--group").arg(cell.group("observer")?.path()).arg("--").args(args);
    let output = command.current_dir(cell.dir()).stdin(Stdio::null()).output();
    let output = output.context("failed to run perf (Debian package linux-perf)")?;
    cell.stop.check()?;
    Ok(format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

/// The time of one round, us.
fn parse(said: &str) -> Option<f64> {
    said.lines().find_map(|line| line.trim().strip_suffix("usecs/op")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_round() {
        let said = "# Running 'sched/pipe' benchmark:\n\n     Total time: 0.003 [sec]\n\n       3.365000 usecs/op\n 297176 ops/sec\n";
        assert_eq!(parse(said), Some(3.365));
        assert_eq!(parse("Error: no such thing"), None);
    }
}
