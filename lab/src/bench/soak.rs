// SPDX-License-Identifier: Apache-2.0
//! `lab soak`: one long capture of a busy service that forks all the time. What a short one never shows is looked for: memory that
//! grows with every process that came and went, lines of the ledger that drift from the clock, rings that run over.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use diagnose::verdict::Verdict;

use super::experiments::{SERVICE_CPU, redis};
use super::observed::Observer;
use crate::cell::{Cell, Program};
use crate::paths::Paths;
use crate::scenario::Aim;
use crate::stop::Stop;

/// A part of the service that starts some fifty programs a second, each of which is gone at once.
const FORKS: &str = "while :; do sleep 0.015; done";
/// Resident memory at the end, of that after a quarter of the time: what caches take they have taken by then.
const GROWN: f64 = 1.1;
/// By how much the lines of the ledger may miss the clock, of it.
const OFF: f64 = 0.01;
/// What the verdict on so long a recording may take, besides what any may.
const VERDICT: Duration = Duration::from_secs(600);
/// So long before the window's end it is looked for the last time: then it makes the verdict.
const BEFORE_THE_END: Duration = Duration::from_secs(1);

/// Arguments of `lab soak`.
#[derive(Debug, clap::Args)]
pub struct SoakArgs {
    /// For how long; an hour is the longest that wakewalk observes.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub minutes: u32,
}

/// What came of it.
struct Soaked {
    /// Resident memory after each quarter of the time, bytes.
    quarters: [u64; 4],
    /// The most there ever was, the verdict's making included, bytes.
    peak: u64,
    /// Kernel memory of maps, bytes.
    maps: u64,
    /// The lines of the ledger together, and the clock, thread seconds.
    ledger: f64,
    wall: f64,
    /// Of the clock's time, what each thread's lines account for.
    covered: f64,
    lost: u64,
    /// Bytes on disk.
    recording: u64,
}

/// Observes, prints what came of it; false = memory grew, or the ledger does not add up.
///
/// # Errors
/// The service cannot be run, or wakewalk failed.
pub fn run(args: &SoakArgs, paths: &Paths, stop: &Stop) -> Result<bool> {
    fs::create_dir_all(paths.bench()).context("failed to make the folder of results")?;
    let mut cell = Cell::open("soak", paths, stop)?;
    redis::start(&mut cell)?;
    redis::load(&mut cell)?;
    cell.start(Program::installed("sh").named("forks").args(["-c", FORKS]).on_cpus(SERVICE_CPU))?;
    let window = Duration::from_secs(60) * args.minutes;
    let service = Aim::Cgroup(cell.group("service")?.path().to_path_buf());
    let mut observer = Observer::start(paths, &cell, &service.args(), window.as_secs_f64())?;
    observer.wait_until_observing()?;
    let quarters = quarters(&mut observer, &mut cell, args.minutes)?;
    let ended = observer.wait(VERDICT)?;
    let (verdict, recording) = (ended.verdict()?, size(&ended.recording())?);
    let soaked = Soaked::of(quarters, &verdict, recording);
    let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    print!("{} min at {}, {cpus} CPUs:\n{}", args.minutes, super::commit(paths), soaked.table());
    let wrong = soaked.wrong();
    wrong.iter().for_each(|what| println!("FAIL {what}"));
    Ok(wrong.is_empty())
}

/// Looks once a minute, so that a quarter of the time is one of the moments; tells each, returns those of the quarters.
fn quarters(observer: &mut Observer, cell: &mut Cell, minutes: u32) -> Result<[u64; 4]> {
    let looks = minutes.next_multiple_of(4);
    let (began, each) = (Instant::now(), Duration::from_secs(60) * minutes / looks);
    let mut quarters = [0; 4];
    for nth in 1..=looks {
        let due = each * nth - if nth == looks { BEFORE_THE_END } else { Duration::ZERO };
        cell.stop.sleep(due.saturating_sub(began.elapsed()))?;
        cell.check_running()?;
        let resident = observer.resident()?;
        eprintln!("{:4} s: {:.1} MB", began.elapsed().as_secs(), megabytes(resident));
        if (4 * nth).is_multiple_of(looks) {
            quarters[(4 * nth / looks - 1) as usize] = resident;
        }
    }
    Ok(quarters)
}

impl Soaked {
    fn of(quarters: [u64; 4], verdict: &Verdict, recording: u64) -> Self {
        let lines = &verdict.ledger.threads;
        Self {
            quarters,
            peak: verdict.cost.peak_rss_bytes,
            maps: verdict.cost.kernel_map_bytes,
            ledger: lines.iter().filter(|(line, _)| *line != "wall").map(|(_, seconds)| seconds).sum(),
            wall: lines.get("wall").copied().unwrap_or_default(),
            covered: verdict.coverage.thread_time,
            lost: verdict.coverage.events_lost,
            recording,
        }
    }

    fn table(&self) -> String {
        let mut text = String::new();
        let mut row = |what: &str, value: String| {
            let _ = writeln!(text, "  {what:34} {value:>12}"); // memory is never full
        };
        for (what, bytes) in ["RSS at 1/4", "RSS at 2/4", "RSS at 3/4", "RSS at the end"].iter().zip(self.quarters) {
            row(what, format!("{:.1} MB", megabytes(bytes)));
        }
        row("peak RSS, with the verdict", format!("{:.1} MB", megabytes(self.peak)));
        row("kernel memory of maps", format!("{:.1} MB", megabytes(self.maps)));
        row("ledger, of the clock", format!("{:.3} %", self.ledger / self.wall * 100.0));
        row("the same thread by thread", format!("{:.3} %", self.covered * 100.0));
        row("events lost", self.lost.to_string());
        row("recording", format!("{:.1} MB", megabytes(self.recording)));
        text
    }

    /// What is not as it should be.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let [first, .., end] = self.quarters.map(|bytes| bytes as f64);
        if end > GROWN * first {
            wrong.push(format!("RSS grew by {:.1} % from the first quarter to the end", (end / first - 1.0) * 100.0));
        }
        // Without a thread the two are 0, and nothing was measured.
        let off = (self.ledger / self.wall - 1.0).abs();
        if off.is_nan() || off > OFF {
            wrong.push(format!("the ledger has {:.1} s of the clock's {:.1} s", self.ledger, self.wall));
        }
        wrong
    }
}

/// Bytes of the files of a recording.
fn size(dir: &Path) -> Result<u64> {
    let files = fs::read_dir(dir).with_context(|| format!("failed to read `{}`", dir.display()))?;
    files.map(|file| Ok(file?.metadata()?.len())).sum()
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_or_does_not_add_up_fails() {
        let soaked = |end, ledger, wall| Soaked {
            quarters: [40_000_000, 41_000_000, 60_000_000, end],
            peak: 90_000_000,
            maps: 0,
            ledger,
            wall,
            covered: 1.0,
            lost: 0,
            recording: 0,
        };
        let wrong = |end, ledger, wall| soaked(end, ledger, wall).wrong();
        assert!(wrong(43_900_000, 99.1, 100.0).is_empty(), "what fell again has not grown");
        assert_eq!(wrong(46_000_000, 100.0, 100.0), ["RSS grew by 15.0 % from the first quarter to the end"]);
        assert_eq!(wrong(40_000_000, 98.0, 100.0), ["the ledger has 98.0 s of the clock's 100.0 s"]);
        assert_eq!(wrong(40_000_000, 0.0, 0.0).len(), 1, "nothing was measured");
    }
}
