// SPDX-License-Identifier: Apache-2.0
//! A process of ten thousand threads, each awake for a moment a second.

use std::fs;

use anyhow::{Context, Result};

use super::SHORT_SECONDS;
use crate::bench::row::Row;
use crate::bench::service::{self, Service};
use crate::bench::{Bench, Experiment};
use crate::builds::Build;
use crate::cell::{Cell, Program};

const THREADS: &str = "10000";
const PAGE: &str = "crowd.page";

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "threads",
    about: "a process with 10,000 threads that each wake up once a second, diagnosed for 5 s",
    builds: &[Build::C("lab/bench/crowd.c", "crowd")],
    run,
};

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-threads", bench.paths, bench.stop)?;
    let page = cell.dir().join(PAGE);
    let crowd = Program::built("crowd").args([THREADS.into(), page.into_os_string()]);
    let pid = cell.start(crowd)?;
    let stop = cell.stop.clone();
    // All are there, and each has been awake: the first round is over.
    let ready = stop.poll(std::time::Duration::from_secs(60), || {
        cell.check_running()?;
        Ok(wakeups(&cell).is_ok_and(|n| n > 20_000))
    })?;
    anyhow::ensure!(ready, "the host did not start {THREADS} threads within a minute");
    let service = Service { pid, unit: "wakeup", count: wakeups, cpu_ns: service::process_cpu_ns };
    service::compare(bench, &mut cell, &service, "10,000 threads", (SHORT_SECONDS, None))
}

fn wakeups(cell: &Cell) -> Result<u64> {
    let bytes = fs::read(cell.dir().join(PAGE)).context("the crowd has no page of counts")?;
    bytes.first_chunk().map(|word| u64::from_ne_bytes(*word)).context("the crowd's page of counts is empty")
}
