// SPDX-License-Identifier: Apache-2.0
//! What came of loads, kept as a recording (`load --save`).

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use collect::{clock, host};
use load::{EndedBy, Run};
use recording::{Meta, Sink as _, Tables, Writer};

use crate::left;
use crate::parts::LOAD;
use crate::plan::TOOL;

/// Loads of one command, in the order in which they were over.
pub struct Kept {
    is_wanted: bool,
    started: SystemTime,
    start_ns: u64,
    begun: Instant,
    runs: Mutex<Vec<(Duration, Run)>>,
}

impl Kept {
    /// None yet; only if they are wanted, they are kept.
    pub fn new(is_wanted: bool) -> Self {
        let (started, start_ns, begun) = (SystemTime::now(), clock::monotonic_ns(), Instant::now());
        Self { is_wanted, started, start_ns, begun, runs: Mutex::default() }
    }

    /// One is over.
    pub fn add(&self, run: Run) {
        if let (true, Ok(mut runs)) = (self.is_wanted, self.runs.lock()) {
            runs.push((self.begun.elapsed().saturating_sub(run.lasted), run));
        }
    }

    /// One is over that began at a moment of CLOCK_MONOTONIC, ns: it was looked through before it is kept.
    pub fn add_from(&self, run: Run, began_ns: u64) {
        if let (true, Ok(mut runs)) = (self.is_wanted, self.runs.lock()) {
            runs.push((Duration::from_nanos(began_ns.saturating_sub(self.start_ns)), run));
        }
    }

    /// Writes them into a folder, which must hold nothing yet.
    ///
    /// # Errors
    /// It cannot be written to, holds something, or its disk is full.
    pub fn save(self, dir: &Path, named: &str) -> Result<()> {
        let runs = self.runs.into_inner().unwrap_or_default();
        let first = runs.first().map_or(Duration::ZERO, |(began, _)| *began);
        let mut tables = Tables::default();
        for (step, (began, run)) in (0..).zip(&runs) {
            load::save(run, step, began.saturating_sub(first), &mut tables);
        }
        let length = runs.last().map_or(Duration::ZERO, |(began, run)| began.saturating_sub(first) + run.length);
        let ended =
            if runs.iter().any(|(_, run)| run.ended == Some(EndedBy::Somebody)) { "interrupted" } else { "time" };
        let mut meta = Meta { tool: TOOL.into(), kind: LOAD.into(), ended: ended.into(), ..Meta::default() };
        meta.started = humantime::format_rfc3339_millis(self.started + first).to_string();
        let ns = |length: Duration| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        (meta.start_ns, meta.length_ns) = (self.start_ns.saturating_add(ns(first)), ns(length));
        meta.host = host::inventory(Path::new("/"));
        meta.target.named = named.into();
        let mut writer = Writer::create(dir, &meta)?; // what is there already is somebody else's
        let written = writer.append_all(&tables).and_then(|()| writer.seal(&meta));
        written.inspect_err(|_| left::remove(dir)) // half of it would stand in the way of the next one
    }
}
