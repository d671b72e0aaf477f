// SPDX-License-Identifier: Apache-2.0
//! A service under constant load, and what a request costs it while somebody looks.
//!
//! The CPU time is the scheduler's own sum for the service's process, the same that a cgroup's
//! `cpuacct` adds up. It holds what hooks cost inside the service's time; a hook at the switch away
//! from the service is charged to who comes next, as on every Linux: throughput shows that part.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

use super::observed::{Ended, Observed, Observer, now_ns};
use super::peers::Peer;
use super::row::{Goal, Row};
use super::{Bench, rounds, statistics};
use crate::cell::Cell;
use crate::scenario::Aim;

/// A running service.
pub struct Service {
    /// Its process.
    pub pid: u32,
    /// What it answers: `request`.
    pub unit: &'static str,
    /// How many it has answered so far.
    pub count: fn(&Cell) -> Result<u64>,
    /// CPU time of the service so far, ns; `process_cpu_ns` where it is one process.
    pub cpu_ns: fn(&Cell, u32) -> Result<u64>,
}

/// Who looks.
#[derive(Clone, Copy)]
pub enum Side {
    /// Nobody.
    Alone,
    /// Another tool, while it is attached.
    Peer(&'static Peer),
}

/// How long a diagnosis still counts after its process has ended: the kernel takes programs off in the background.
const AFTERMATH: Duration = Duration::from_millis(250);

/// What a request cost over some time.
pub struct Slice {
    /// CPU time of the service for each request, us.
    pub us_per_request: f64,
    /// Requests answered a second.
    pub per_second: f64,
    /// The diagnosis, where there was one.
    pub observed: Option<Observed>,
    /// Why the other tool did not start, in its own words.
    pub refusal: Option<String>,
}

/// A diagnosis, and the service alone before and after it.
pub struct Beside {
    /// Before and after.
    pub alone: Slice,
    /// While somebody looks.
    pub with: Slice,
}

#[derive(Clone, Copy)]
struct Reading {
    at_ns: u64,
    cpu_ns: u64,
    requests: u64,
}

impl Service {
    /// Measures one side.
    ///
    /// # Errors
    /// The service is gone, or wakewalk failed.
    fn slice(&self, cell: &Cell, side: Side, seconds: f64) -> Result<Slice> {
        let length = Duration::from_secs_f64(seconds);
        match side {
            Side::Alone => {
                let before = self.reading(cell)?;
                cell.stop.sleep(length)?;
                slice(&[(before, self.reading(cell)?)])
            }
            Side::Peer(peer) => {
                let running = peer.watch(cell, self.pid)?;
                let before = self.reading(cell)?;
                cell.stop.sleep(length)?;
                let slice = slice(&[(before, self.reading(cell)?)])?;
                Ok(Slice { refusal: running.end(), ..slice })
            }
        }
    }

    /// Measures a whole diagnosis between two halves of the same length without one: a host that steadily gets faster or
    /// slower changes both sides alike then.
    ///
    /// # Errors
    /// As `slice`.
    pub fn beside(&self, bench: &Bench<'_>, cell: &Cell, seconds: f64) -> Result<(Beside, Ended)> {
        let half = Duration::from_secs_f64(seconds / 2.0);
        let target: Vec<OsString> = Aim::Pid(self.pid).args().into();
        let begin = self.reading(cell)?;
        cell.stop.sleep(half)?;
        let before = self.reading(cell)?;
        let observer = Observer::start(bench.paths, cell, &target, seconds)?;
        let ended = observer.wait(Duration::from_secs_f64(seconds))?;
        cell.stop.sleep(AFTERMATH)?;
        let after = self.reading(cell)?;
        cell.stop.sleep(half)?;
        let end = self.reading(cell)?;
        let (alone, with) = (slice(&[(begin, before), (after, end)])?, slice(&[(before, after)])?);
        Ok((Beside { alone, with }, ended))
    }

    /// The same, with what the diagnosis says of itself.
    fn read_beside(&self, bench: &Bench<'_>, cell: &Cell, seconds: f64) -> Result<Beside> {
        let (Beside { alone, with }, ended) = self.beside(bench, cell, seconds)?;
        Ok(Beside { alone, with: Slice { observed: Some(ended.read()?), ..with } })
    }

    fn reading(&self, cell: &Cell) -> Result<Reading> {
        let requests = (self.count)(cell)?;
        let cpu_ns = (self.cpu_ns)(cell, self.pid)?;
        Ok(Reading { at_ns: now_ns()?, cpu_ns, requests })
    }
}

/// What a request cost in several stretches together.
fn slice(stretches: &[(Reading, Reading)]) -> Result<Slice> {
    let sum = |number: fn(&Reading) -> u64| {
        stretches.iter().map(|(from, until)| number(until).saturating_sub(number(from))).sum::<u64>() as f64
    };
    let requests = sum(|r| r.requests);
    anyhow::ensure!(requests > 0.0, "the service answered nothing; is its load still there?");
    Ok(Slice {
        us_per_request: sum(|r| r.cpu_ns) / 1e3 / requests,
        per_second: requests / (sum(|r| r.at_ns) / 1e9),
        observed: None,
        refusal: None,
    })
}

/// The goal of a comparison, as a ratio to the service that nobody looks at.
#[derive(Clone, Copy)]
pub enum Wanted {
    /// CPU time for each request.
    CpuAtMost(f64),
    /// Requests a second.
    RateAtLeast(f64),
}

/// Lines about CPU for each request and the rate of requests, wakewalk against nobody,
/// and about wakewalk itself.
///
/// # Errors
/// As `slice`.
pub fn compare(
    bench: &Bench<'_>,
    cell: &mut Cell,
    service: &Service,
    what: &str,
    (seconds, goal): (f64, Option<Wanted>),
) -> Result<Vec<Row>> {
    let wanted = if goal.is_some() { bench.fine_rounds() } else { bench.rounds() };
    let done = rounds::measure(wanted, cell, &[()], |cell, ()| service.read_beside(bench, cell, seconds))?;
    let pairs = |number: fn(&Slice) -> f64| -> Vec<(f64, f64)> {
        done.rounds.iter().flatten().map(|b| (number(&b.alone), number(&b.with))).collect()
    };
    let unit = service.unit;
    let cpu = Row::ratio(format!("{what}: CPU per {unit}"), "us", &pairs(|s| s.us_per_request));
    let rate = Row::ratio(format!("{what}: {unit}s a second"), "/s", &pairs(|s| s.per_second));
    let seen: Vec<&Observed> = done.rounds.iter().flatten().filter_map(|b| b.with.observed.as_ref()).collect();
    let mut rows = match goal {
        Some(Wanted::CpuAtMost(most)) => vec![cpu.goal(Goal::AtMost(most)), rate],
        Some(Wanted::RateAtLeast(least)) => vec![cpu, rate.goal(Goal::AtLeast(least))],
        None => vec![cpu, rate],
    };
    rows.extend(own_cost(what, &seen));
    Ok(rows.into_iter().map(|row| done.sign(row)).collect())
}

/// Lines about wakewalk's own time and memory, as its host sees them.
pub fn own_cost(what: &str, seen: &[&Observed]) -> Vec<Row> {
    let values = |number: fn(&Observed) -> f64| seen.iter().map(|o| number(o)).collect::<Vec<f64>>();
    let row = |name: &str, unit: &str, number| Row::value(format!("{what}: {name}"), unit, &values(number));
    let told: Vec<(f64, f64)> =
        seen.iter().map(|o| (o.cpu_s, o.own_account_s("user") + o.own_account_s("verdict"))).collect();
    vec![
        row("start to first event", "s", |o| o.first_event_s).goal(Goal::AtMost(1.5)),
        row("verdict after the window's end", "s", |o| o.verdict_after_s).goal(Goal::AtMost(2.0)),
        row("CPU time of wakewalk's process", "s", |o| o.cpu_s),
        Row::ratio(format!("{what}: that CPU time by its own account"), "s", &told).goal(Goal::WithinFactor(1.5)),
        row("peak RSS", "MB", |o| o.peak_bytes as f64 / 1e6).goal(Goal::AtMost(150.0)),
        row("kernel memory of maps", "MB", |o| o.map_bytes as f64 / 1e6).goal(Goal::AtMost(64.0)),
    ]
}

/// Lines about the other tools on the same service.
///
/// # Errors
/// As `slice`.
pub fn peers(bench: &Bench<'_>, cell: &mut Cell, service: &Service, what: &str, seconds: f64) -> Result<Vec<Row>> {
    let sides: Vec<Side> = std::iter::once(Side::Alone).chain(bench.peers().iter().map(Side::Peer)).collect();
    let done = rounds::measure(bench.peer_rounds(), cell, &sides, |cell, side| service.slice(cell, side, seconds))?;
    let row = |(at, peer): (usize, &Peer)| {
        let name = format!("{what}: {}", peer.name);
        if let Some(why) = done.rounds.iter().find_map(|round| round[at + 1].refusal.as_deref()) {
            return Row::refused(name, why);
        }
        let rate = statistics::of_ratios(&done.pairs(0, at + 1, |s| s.per_second)).map_or(f64::NAN, |e| e.centre);
        let row = Row::ratio(name, "us", &done.pairs(0, at + 1, |s| s.us_per_request));
        done.sign(row).note(format!("{}s a second x{rate:.3}", service.unit))
    };
    Ok(bench.peers().iter().enumerate().map(row).collect())
}

/// CPU time of a process, ns, by the scheduler.
///
/// # Errors
/// It has ended.
pub fn process_cpu_ns(_: &Cell, pid: u32) -> Result<u64> {
    cpu_ns(pid)
}

/// Likewise.
pub fn cpu_ns(pid: u32) -> Result<u64> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.cast_signed()));
    let used = clock.and_then(nix::time::ClockId::now).with_context(|| format!("process {pid} has ended"))?;
    Ok(u64::try_from(Duration::from(used).as_nanos())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_added_up() {
        let at = |at_ns, cpu_ns, requests| Reading { at_ns, cpu_ns, requests };
        let (begin, before) = (at(0, 0, 0), at(1_000_000_000, 500_000, 100));
        let (after, end) = (at(9_000_000_000, 900_000_000, 5000), at(10_000_000_000, 900_500_000, 5300));
        let both = slice(&[(begin, before), (after, end)]).unwrap();
        assert!((both.us_per_request - 2.5).abs() < 1e-9 && (both.per_second - 200.0).abs() < 1e-9);
        assert!(slice(&[(begin, begin)]).is_err(), "without a request nothing can be said of one");
    }

    #[test]
    fn our_own_time_grows() {
        let me = std::process::id();
        let before = cpu_ns(me).unwrap();
        while cpu_ns(me).unwrap() == before {
            std::hint::spin_loop();
        }
        assert!(cpu_ns(5_000_000).is_err(), "above the highest process id that Linux gives");
    }
}
