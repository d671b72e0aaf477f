// SPDX-License-Identifier: Apache-2.0
//! One server from its start to its end: its limit, and a diagnosis at each load.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use diagnose::verdict::Verdict;

use super::Load;
use super::animal::{self, Animal, Staged};
use super::keeping::{Book, Entry, Found};
use super::visitors::{self, Seen};
use crate::bench::now_ns;
use crate::builds;
use crate::cell::Cell;
use crate::disturbance::{Disturbance, Watch};
use crate::paths::Paths;
use crate::probe::Probe;
use crate::procfs::{self, TICKS_PER_SECOND};
use crate::stop::Stop;

/// Before the next try.
const PAUSE: Duration = Duration::from_secs(4);

/// A visit to one server.
pub struct Visit<'a> {
    /// The checkout.
    pub paths: &'a Paths,
    /// Ends all waiting.
    pub stop: &'a Stop,
    /// The server.
    pub animal: &'static Animal,
    /// Which time it is.
    pub round: usize,
    /// Observed time of each load.
    pub seconds: u64,
    /// How often one load is tried until the host was not disturbed.
    pub attempts: u32,
}

/// A diagnosis and what was seen beside it.
struct Looked {
    verdict: Verdict,
    seen: Seen,
    /// Share of all CPUs that was used.
    machine: f64,
    disturbance: Disturbance,
    recording: PathBuf,
}

/// Median response time of a service that gets more than it can do with somebody looking: such a one is not healthy.
const DROWNED_MS: f64 = 10.0;

impl Visit<'_> {
    /// Visits it at each load.
    ///
    /// # Errors
    /// The runner was asked to end. Everything else is an entry.
    pub fn all(&self, loads: &[Load], book: &mut Book) -> Result<()> {
        if let Some(what) = animal::missing(self.animal, self.paths) {
            let why = format!("no `{what}` here; run scripts/install-deps.sh zoo");
            return book.add(Entry::skipped(self.animal, &why));
        }
        let begun = builds::build(self.animal.builds, self.paths).and_then(|()| self.begin());
        self.stop.check()?;
        let (mut cell, staged, limit) = match begun {
            Ok(begun) => begun,
            Err(error) => return book.add(Entry::broken(self.animal, self.round, "-", &error)),
        };
        for &load in loads {
            let looked = self.until_undisturbed(&mut cell, &staged, load, limit);
            self.stop.check()?;
            match looked {
                Ok(looked) => book.add(self.entry(load, limit, &staged, looked, book)?)?,
                // Who knows what it is like now.
                Err(error) => return book.add(Entry::broken(self.animal, self.round, &load.to_string(), &error)),
            }
        }
        Ok(())
    }

    fn begin(&self) -> Result<(Cell, Staged, f64)> {
        let mut cell = Cell::open(&format!("zoo-{}", self.animal.name), self.paths, self.stop)?;
        let staged = (self.animal.stage)(&mut cell, self.paths)?;
        let limit = visitors::limit(&mut cell, &staged.visitors).context("failed to find the limit")?;
        Ok((cell, staged, limit))
    }

    fn until_undisturbed(&self, cell: &mut Cell, staged: &Staged, load: Load, limit: f64) -> Result<Looked> {
        let mut attempt = 1;
        loop {
            let looked = self.look(cell, staged, load, limit)?;
            if attempt >= self.attempts || !looked.disturbance.is_too_much() {
                return Ok(looked);
            }
            eprintln!("  {load}: the host was disturbed, once more");
            self.stop.sleep(PAUSE * attempt)?;
            attempt += 1;
        }
    }

    fn look(&self, cell: &mut Cell, staged: &Staged, load: Load, limit: f64) -> Result<Looked> {
        let coming = visitors::come(cell, &staged.visitors, load, limit)?;
        cell.check_running()?;
        let aim = (staged.aim)()?;
        let name = load.to_string().replace(" %", "");
        let recording = self.paths.lab().join("zoo").join(format!("{}-{name}", self.animal.name));
        let probe = Probe {
            paths: self.paths,
            stop: self.stop,
            seconds: self.seconds,
            save: Some(recording.clone()),
            group: cell.group("observer")?.path().to_path_buf(),
        };
        let (watch, host, from_ns) = (Watch::start()?, procfs::host()?, now_ns()?);
        let verdict = probe.diagnose(&aim)?;
        let (until_ns, now) = (now_ns()?, procfs::host()?);
        let disturbance = watch.finish(&cell.own_pids())?;
        // Visitors who left early would have left it idle under our eyes.
        cell.check_running()?;
        let seen = visitors::leave(cell, &coming, from_ns, until_ns)?;
        let busy_s = now.busy.saturating_sub(host.busy) as f64 / TICKS_PER_SECOND;
        let cpus = thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        let machine = busy_s / cpus / (until_ns.saturating_sub(from_ns) as f64 / 1e9);
        Ok(Looked { verdict, seen, machine, disturbance, recording })
    }

    fn entry(&self, load: Load, limit: f64, staged: &Staged, looked: Looked, book: &Book) -> Result<Entry> {
        let drowned = looked.seen.p50_ms.is_some_and(|p50_ms| p50_ms >= DROWNED_MS);
        let disturbed = looked.disturbance.is_too_much() || drowned;
        let found = Found::of(&looked.verdict, disturbed);
        let first = looked.verdict.findings.first();
        let seen = looked.verdict.requests.first().filter(|busiest| busiest.is_accepted() && busiest.exchanges > 0);
        let mut entry = Entry {
            server: self.animal.name.into(),
            round: self.round,
            load: load.to_string(),
            per_second: Some(looked.seen.per_second),
            of_limit: staged.visitors.modest.filter(|_| load != Load::Idle).map(|_| looked.seen.per_second / limit),
            machine: Some(looked.machine),
            p50_ms: looked.seen.p50_ms,
            p99_ms: looked.seen.p99_ms,
            seen_ms: seen.map(|busiest| [busiest.seconds.p50 * 1e3, busiest.seconds.p99 * 1e3]),
            found,
            verdict: first.map_or(looked.verdict.verdict.clone(), |finding| finding.cause.clone()),
            confidence: first.map(|finding| finding.confidence.clone()),
            note: if found == Found::Nobody { String::new() } else { looked.verdict.headline.clone() },
            disturbed,
            recording: None,
        };
        if found != Found::Nobody {
            entry.recording = Some(book.keep(&looked.recording, &entry)?);
        } else {
            fs::remove_dir_all(&looked.recording).context("failed to remove a recording")?;
        }
        eprintln!("  {}", entry.sentence());
        Ok(entry)
    }
}
