// SPDX-License-Identifier: Apache-2.0
//! Measuring the streaming service from three sides: its CPU by the kernel, its polls by its own
//! counts, its streams by the viewers.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::cell::Cell;
use crate::procfs::{self, TICKS_PER_SECOND};
use crate::scenarios::busy_poll::{STATUS_PORT, watch};

/// Observed time.
const LENGTH: Duration = Duration::from_secs(4);
/// Until all viewers are there.
const SETTLE: Duration = Duration::from_millis(700);

/// Counts of the service's status page.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Stats {
    polls: u64,
    reads: u64,
}

/// What the viewers saw.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Streams {
    pub chunks_per_second: f64,
    pub jitter_p50_ms: f64,
    pub jitter_p99_ms: f64,
    failed_viewers: u64,
}

/// The service with one number of viewers.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub viewers: usize,
    pub cpu_pct: f64,
    pub polls_per_second: f64,
    /// None without viewers: nothing was read.
    pub polls_per_read: Option<f64>,
    pub streams: Option<Streams>,
}

/// Lets `viewers` watch for a few seconds and measures.
pub fn measure(cell: &mut Cell, pid: u32, viewers: usize) -> Result<Reading> {
    let watching = match viewers {
        0 => None,
        n => Some(watch(cell, n, LENGTH + 2 * SETTLE)?),
    };
    cell.stop.sleep(SETTLE)?;
    let (began, before, ticks) = (Instant::now(), stats(cell)?, ticks(pid)?);
    cell.stop.sleep(LENGTH)?;
    let (seconds, after) = (began.elapsed().as_secs_f64(), stats(cell)?);
    let used = self::ticks(pid)?.saturating_sub(ticks) as f64 / TICKS_PER_SECOND;
    let streams = watching.map(|watcher| streams(cell, watcher)).transpose()?;
    let polls = after.polls.saturating_sub(before.polls) as f64;
    let reads = after.reads.saturating_sub(before.reads) as f64;
    Ok(Reading {
        viewers,
        cpu_pct: used / seconds * 100.0,
        polls_per_second: polls / seconds,
        polls_per_read: (reads > 0.0).then(|| polls / reads),
        streams,
    })
}

fn streams(cell: &mut Cell, watcher: u32) -> Result<Streams> {
    let streams: Streams = serde_json::from_str(&cell.finish(watcher, LENGTH)?)?;
    ensure!(streams.failed_viewers == 0, "{} viewers lost their stream", streams.failed_viewers);
    Ok(streams)
}

fn ticks(pid: u32) -> Result<u64> {
    Ok(procfs::process(pid).context("the service has ended")?.ticks)
}

fn stats(cell: &Cell) -> Result<Stats> {
    let mut page = cell.connect(STATUS_PORT)?;
    page.write_all(b"GET /stats HTTP/1.0\r\n\r\n").context("failed to ask for the service's counts")?;
    let mut text = String::new();
    page.read_to_string(&mut text).context("failed to read the service's counts")?;
    let body = text.split("\r\n\r\n").nth(1).context("the status page has no body")?;
    serde_json::from_str(body).context("the status page shows no counts")
}
