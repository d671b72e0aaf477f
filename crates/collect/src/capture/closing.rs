// SPDX-License-Identifier: Apache-2.0
//! What only the end of a capture can tell: the last names of functions, what could not be seen, what it cost.

use anyhow::Result;
use recording::Writer;
use recording::tables::{Gap, Thread};

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
    capture.gaps.extend(not_followed(&capture)?);
    capture.gaps.extend(unseen_arrivals(&capture)?);
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
    (!host::shows_kernel_symbols()).then(|| Gap { what: "kernel symbols".into(), why: why.into() })
}

/// That threads got their CPU without anybody noticing, often enough to blur what they were off it for.
fn unseen_arrivals(capture: &Capture<'_, '_>) -> Result<Option<Gap>> {
    const WORTH_A_WORD: f64 = 0.01;
    let c = capture.probes.ledger.counts()?;
    let part = c.stays_unseen as f64 / c.stays.max(1) as f64;
    let why = format!(
        "the kernel did not show {:.1} % of them: such a stay is taken to be as long as its CPU time, and what interrupts \
         took of it counts as off the CPU",
        part * 100.0
    );
    Ok((part >= WORTH_A_WORD).then(|| Gap { what: "arrivals on a CPU".into(), why }))
}

/// That wakers were left alone because there were too many of them.
fn not_followed(capture: &Capture<'_, '_>) -> Result<Option<Gap>> {
    let Some(wakeups) = &capture.probes.wakeups else { return Ok(None) };
    let c = wakeups.counts()?;
    let why = format!(
        "{} wakeups came from processes that could not be followed, beside {} that were: chains end there",
        c.not_followed, c.followed
    );
    Ok((c.not_followed > 0).then(|| Gap { what: "walk".into(), why }))
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

fn costs(capture: &Capture<'_, '_>) -> Result<Vec<recording::tables::Cost>> {
    let mut rows = vec![capture.cost.program("sched_switch", capture.probes.ledger.counts()?.switches)];
    if let Some(profile) = &capture.probes.profile {
        rows.push(capture.cost.program("cpu-clock", profile.counts()?.hits));
    }
    if let Some(wakeups) = &capture.probes.wakeups {
        rows.push(capture.cost.program("sched_waking", wakeups.counts()?.hits));
    }
    let (runs, ns) = capture.windows.runs();
    rows.push(cost::program("syscalls", runs, ns));
    Ok(rows)
}

fn map_bytes(capture: &Capture<'_, '_>) -> u64 {
    capture.probes.map_bytes() + capture.windows.map_bytes()
}
