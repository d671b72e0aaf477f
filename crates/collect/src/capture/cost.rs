// SPDX-License-Identifier: Apache-2.0
//! What the capture costs: run time of our programs, CPU and memory of our process.

use std::collections::HashMap;
use std::fs;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use recording::tables::{Cost, Gap};

use crate::clock::process_cpu_ns;
use crate::probes::run_stats::{self, Runs, Slice};

/// Statistics are on for this long, this often: they slow down every program of the host. Short and
/// often, because a run costs several times as much on an idle host as in a storm of switches, and
/// the price of all runs is that of those that were timed.
const SLICE: Duration = Duration::from_millis(50);
const EVERY: Duration = Duration::from_millis(1500);

/// The running account.
pub struct Account {
    cpu_before_ns: u64,
    open: Option<(Slice, Duration)>,
    next: Duration,
    priced: HashMap<&'static str, Runs>,
    refused: Option<String>,
}

impl Account {
    /// From here on.
    pub fn start() -> Self {
        let next = Duration::from_millis(100);
        Self { cpu_before_ns: process_cpu_ns(), open: None, next, priced: HashMap::new(), refused: None }
    }

    /// Opens or closes a slice of statistics.
    pub fn tick<'p>(&mut self, elapsed: Duration, programs: impl FnOnce() -> Vec<(&'static str, BorrowedFd<'p>)>) {
        match &self.open {
            Some((_, until)) if elapsed >= *until => {
                self.open = None;
                self.priced.extend(programs().into_iter().map(|(name, program)| (name, run_stats::read(program))));
            }
            None if elapsed >= self.next => {
                self.next = elapsed + EVERY;
                match run_stats::start() {
                    Ok(slice) => self.open = Some((slice, elapsed + SLICE)),
                    Err(why) => self.refused = Some(format!("{why:#}")),
                }
            }
            _ => {}
        }
    }

    /// That nobody can say what the programs cost, where the kernel refused to count.
    pub fn gap(&self) -> Option<Gap> {
        let why = self.refused.as_ref()?;
        let why = format!("what the probes cost in the kernel is unknown, and missing in the capture's cost: {why}");
        Some(Gap::refused("cost", why))
    }

    /// Cost of `runs` runs of a program.
    pub fn program(&self, name: &'static str, runs: u64) -> Cost {
        let ns_per_run = self.priced.get(name).filter(|r| r.count > 0).map_or(0.0, |r| r.ns as f64 / r.count as f64);
        cost_of(name, runs, ns_per_run)
    }

    /// Cost of our own process so far.
    pub fn process(&self, map_bytes: u64) -> Vec<Cost> {
        let row = |what: &str, cpu_ns, bytes| Cost { what: what.into(), runs: 0, cpu_ns, bytes };
        vec![
            row("user", process_cpu_ns().saturating_sub(self.cpu_before_ns), 0),
            row("rss", 0, peak_rss_bytes()),
            row("maps", 0, map_bytes),
        ]
    }
}

/// CPU time that this process takes after its recording was written.
pub struct Afterwards {
    from_ns: u64,
}

impl Afterwards {
    /// From here on.
    pub fn start() -> Self {
        Self { from_ns: process_cpu_ns() }
    }

    /// Until now, as a row for the recording.
    pub fn so_far(&self) -> Cost {
        let cpu_ns = process_cpu_ns().saturating_sub(self.from_ns);
        Cost { what: "verdict".into(), cpu_ns, ..Cost::default() }
    }
}

/// Cost of a program's runs, extrapolated from the runs that were timed.
pub fn cost_of(name: &str, runs: u64, ns_per_run: f64) -> Cost {
    Cost { what: format!("bpf:{name}"), runs, cpu_ns: (runs as f64 * ns_per_run) as u64, bytes: 0 }
}

fn peak_rss_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
