// SPDX-License-Identifier: Apache-2.0
//! A process that forks a thousand children a second, which end at once.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{SERVICE_CPU, SHORT_SECONDS};
use crate::bench::row::Row;
use crate::bench::service::{self, Service};
use crate::bench::{Bench, Experiment};
use crate::builds::Build;
use crate::cell::{Cell, Program};

const PAGE: &str = "forks.page";

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "forks",
    about: "a process that forks 1,000 short-lived children a second, diagnosed for 5 s",
    builds: &[Build::C("lab/bench/forks.c", "forks")],
    run,
};

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-forks", bench.paths, bench.stop)?;
    let page = cell.dir().join(PAGE);
    let forks = Program::built("forks").args(["1000".into(), page.into_os_string()]);
    let pid = cell.start(forks.on_cpus(SERVICE_CPU))?;
    cell.stop.sleep(Duration::from_secs(1))?;
    let service =
        Service { pid, unit: "fork", count: |cell| Ok(page_of(cell)?.0), cpu_ns: |cell, _| Ok(page_of(cell)?.1) };
    service::compare(bench, &mut cell, &service, "1,000 forks a second", (SHORT_SECONDS, None))
}

/// Children so far, and the CPU time of the process and its children by its own getrusage, ns.
fn page_of(cell: &Cell) -> Result<(u64, u64)> {
    let bytes = fs::read(cell.dir().join(PAGE)).context("the forking process has no page of counts")?;
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u64::from_ne_bytes(*word));
    word(0).zip(word(8)).context("the page of counts is cut off")
}
