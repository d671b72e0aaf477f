// SPDX-License-Identifier: Apache-2.0
//! Two processes that send one byte to and fro: a wait and a wakeup for each, and nothing else.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{PEER_SECONDS, SHORT_SECONDS};
use crate::bench::row::Row;
use crate::bench::service::{self, Service, Wanted};
use crate::bench::{Bench, Experiment};
use crate::builds::Build;
use crate::cell::{Cell, Program};

const PAGE: &str = "pingpong.page";

/// The experiment.
pub static EXPERIMENT: Experiment = Experiment {
    name: "ping-pong",
    about: "one byte to and fro over the loopback, diagnosed for 5 s",
    builds: &[Build::C("lab/bench/pingpong.c", "pingpong")],
    run,
};

fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut cell = Cell::open("bench-ping-pong", bench.paths, bench.stop)?;
    let page = cell.dir().join(PAGE);
    let pid = cell.start(Program::built("pingpong").args([page.into_os_string()]))?;
    cell.stop.sleep(Duration::from_secs(1))?;
    let service =
        Service { pid, unit: "round trip", count: |cell| Ok(page_of(cell)?.0), cpu_ns: |cell, _| Ok(page_of(cell)?.1) };
    let wanted = (SHORT_SECONDS, Some(Wanted::RateAtLeast(0.95)));
    let mut rows = service::compare(bench, &mut cell, &service, "ping-pong", wanted)?;
    rows.extend(service::peers(bench, &mut cell, &service, "ping-pong", PEER_SECONDS)?);
    Ok(rows)
}

/// Round trips so far, and the CPU time of the one that answers, ns.
fn page_of(cell: &Cell) -> Result<(u64, u64)> {
    let bytes = fs::read(cell.dir().join(PAGE)).context("the two have no page of counts")?;
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u64::from_ne_bytes(*word));
    word(0).zip(word(8)).context("the page of counts is cut off")
}
