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
    /// What was told of each part so far.
    told: HashMap<String, Cost>,
}

impl Account {
    /// From here on.
    pub fn start() -> Self {
        Self {
            cpu_before_ns: process_cpu_ns(),
            open: None,
            next: Duration::from_millis(100),
            priced: HashMap::new(),
            refused: None,
            told: HashMap::new(),
        }
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
                    // Nor will it be allowed later.
                    Err(why) => (self.refused, self.next) = (Some(format!("{why:#}")), Duration::MAX),
                }
            }
            _ => {}
        }
    }

    /// That nobody can say what the programs cost, where the kernel refused to count; told once.
    pub fn gap(&mut self) -> Option<Gap> {
        let why = self.refused.take()?;
        let why = format!("what the probes cost in the kernel is unknown, and missing in the capture's cost: {why}");
        Some(Gap::refused("cost", why))
    }

    /// What is new in these sums since the start, as rows of the slice that ends at `t_ns`. A program whose runs turn out cheaper
    /// than was told costs nothing until that is made up for, so that the rows add up to the last sum.
    pub fn fresh(&mut self, t_ns: u64, sums: Vec<Cost>) -> Vec<Cost> {
        let mut row = |sum: Cost| {
            let told = self.told.entry(sum.what.clone()).or_default();
            let row = Cost {
                t_ns,
                runs: sum.runs.saturating_sub(told.runs),
                cpu_ns: sum.cpu_ns.saturating_sub(told.cpu_ns),
                bytes: if sum.bytes > told.bytes { sum.bytes } else { 0 },
                what: sum.what,
            };
            told.runs += row.runs;
            told.cpu_ns += row.cpu_ns;
            told.bytes = told.bytes.max(row.bytes);
            (row.runs > 0 || row.cpu_ns > 0 || row.bytes > 0).then_some(row)
        };
        sums.into_iter().filter_map(&mut row).collect()
    }

    /// Cost of `runs` runs of a program.
    pub fn program(&self, name: &'static str, runs: u64) -> Cost {
        let ns_per_run = self.priced.get(name).filter(|r| r.count > 0).map_or(0.0, |r| r.ns as f64 / r.count as f64);
        cost_of(name, runs, ns_per_run)
    }

    /// Cost of our own process so far.
    pub fn process(&self, map_bytes: u64) -> Vec<Cost> {
        let row = |what: &str, cpu_ns, bytes| Cost { what: what.into(), cpu_ns, bytes, ..Cost::default() };
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
    Cost { what: format!("bpf:{name}"), runs, cpu_ns: (runs as f64 * ns_per_run) as u64, ..Cost::default() }
}

fn peak_rss_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_slices_add_up_to_what_all_of_it_cost() {
        let mut account = Account::start();
        let mut row = |t_ns, runs, ns_per_run| account.fresh(t_ns, vec![cost_of("x", runs, ns_per_run)]);
        let told = |t_ns, runs, cpu_ns| vec![Cost { t_ns, runs, cpu_ns, ..cost_of("x", 0, 0.0) }];
        assert_eq!(row(1, 100, 0.0), told(1, 100, 0), "no run was timed yet");
        assert_eq!(row(2, 200, 5.0), told(2, 100, 1_000));
        assert_eq!(row(3, 300, 2.0), told(3, 100, 0), "they are cheaper than it seemed");
        assert_eq!(row(4, 900, 2.0), told(4, 600, 800));
        assert_eq!(row(5, 900, 2.0), []);
    }

    #[test]
    fn memory_is_told_when_there_is_more_of_it() {
        let mut account = Account::start();
        let mut told = |bytes| {
            let rows = account.fresh(1, vec![Cost { what: "rss".into(), bytes, ..Cost::default() }]);
            rows.iter().map(|row| row.bytes).collect::<Vec<_>>()
        };
        assert_eq!([told(7), told(7), told(9), told(8)], [vec![7], vec![], vec![9], vec![]]);
    }
}
