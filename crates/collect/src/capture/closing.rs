// SPDX-License-Identifier: Apache-2.0
//! What only the end of a capture can tell: the last names of functions, what could not be seen, what it cost.

use anyhow::Result;
use recording::Writer;
use recording::tables::{Cost, Gap, Thread};

use super::{Capture, cost, threads};
use crate::host;

/// Writes the last tables.
pub fn write(mut capture: Capture<'_, '_>, writer: &mut Writer, length_ns: u64) -> Result<cost::Afterwards> {
    writer.append(&capture.slices.brief_processes())?;
    writer.append(&lost_threads(&capture, length_ns)?)?;
    let costs = costs(&capture)?;
    capture.naming.finish(&mut capture.samples.stacks, writer)?;
    capture.gaps.extend(capture.samplers.gaps());
    capture.gaps.extend(capture.cost.gap());
    capture.gaps.extend(capture.windows.gap());
    capture.gaps.extend(capture.looks.gap());
    capture.gaps.extend(no_addresses());
    for collector in capture.probes.all() {
        capture.gaps.extend(collector.gaps()?);
    }
    writer.append(&capture.gaps)?;
    let mut all = costs;
    all.extend(capture.cost.process(map_bytes(&capture)));
    let afterwards = cost::Afterwards::start();
    writer.append(&all)?;
    Ok(afterwards)
}

/// That interrupts are not told from those whom they interrupt, where this user is not shown the kernel's addresses.
fn no_addresses() -> Option<Gap> {
    let why = "who was interrupted may be shown as who woke somebody: /proc/kallsyms shows this user no addresses (needs \
               CAP_SYSLOG, and kernel.kptr_restrict at 1 or lower)";
    (!host::shows_kernel_symbols()).then(|| Gap::refused("kernel symbols", why))
}

/// The time of threads whose own end row found no room: lost by name, not by amount.
fn lost_threads(capture: &Capture<'_, '_>, t_ns: u64) -> Result<Vec<Thread>> {
    let counts = capture.probes.ledger.counts()?;
    if counts.exits_lost == 0 {
        return Ok(Vec::new());
    }
    let mut row = Thread { t_ns, comm: "(ended, name lost)".into(), ..Thread::default() };
    threads::add(&mut row, &capture.slices.not_yet_reported(&counts.lost));
    row.instances = counts.exits_lost;
    Ok(vec![row])
}

fn costs(capture: &Capture<'_, '_>) -> Result<Vec<Cost>> {
    let mut rows = Vec::new();
    for collector in capture.probes.all() {
        rows.extend(collector.runs()?.into_iter().map(|(name, runs)| capture.cost.program(name, runs)));
    }
    let (runs, ns) = capture.windows.runs();
    rows.push(cost::program("syscalls", runs, ns));
    Ok(rows)
}

fn map_bytes(capture: &Capture<'_, '_>) -> u64 {
    let hung: u64 = capture.probes.all().into_iter().map(|collector| collector.map_bytes()).sum();
    hung + capture.windows.map_bytes()
}
