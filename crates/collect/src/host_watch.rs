// SPDX-License-Identifier: Apache-2.0
//! The look at the whole host, for a user who names no target: a few seconds, without BPF.
//!
//! Every process gets one row of where its threads' time went (CPU, run queue, throttled, waiting), beside the counters
//! of the machine. The rows fill the same tables as a capture does, so that views need no second path.

mod throttled;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use recording::counters::{Key, stat};
use recording::tables::{Cost, Counter, Gap, Process, Thread};
use recording::{Meta, Recording, Sink, Slice, Tables};

use crate::clock::{monotonic_ns, rfc3339};
use crate::host;
use crate::host_processes::{Difference, Ran, Snapshot, difference, host_processes};
use crate::samplers::{Samplers, Scope};
use crate::target::processes;
use throttled::Throttled;

/// Time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// How soon a request to stop is heard.
const STOP_HEARD: Duration = Duration::from_millis(100);

/// Who hears how far the watch is: the time since its start.
pub type Progress<'p> = &'p mut dyn FnMut(Duration);

/// Watches the host for `length`, or until `stop` is set, into `sink`, and seals it.
///
/// # Errors
/// The recording cannot be written.
pub fn run(
    root: &Path,
    length: Duration,
    tool: &str,
    sink: &mut dyn Sink,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Result<()> {
    let seen = watch(root, length, stop, progress);
    sink.put(Slice { range: 0..seen.meta.length_ns, tables: seen.tables })?;
    sink.seal(&Meta { tool: tool.to_string(), ..seen.meta })
}

/// Watches the host; the rows stay in memory.
pub fn watch(root: &Path, length: Duration, stop: &AtomicBool, progress: Progress<'_>) -> Recording {
    let started = SystemTime::now();
    let start_ns = monotonic_ns();
    let before = host_processes(root, None);
    let mut throttled = Throttled::start(root, &before);
    let mut samplers = Samplers::new(Scope::host(root, throttled.cgroups()));
    let mut counters = sample_until(length, start_ns, &mut samplers, stop, progress);
    let after = host_processes(root, Some(&before));
    let t_ns = monotonic_ns() - start_ns;
    counters.extend(samplers.last(t_ns));
    let found = difference(&before, &after);
    let shares = throttled.end(&found, t_ns);
    let ended = if stop.load(Ordering::Relaxed) { "interrupted" } else { "time" };
    let meta = Meta {
        kind: "host".to_string(),
        started: rfc3339(started),
        start_ns,
        length_ns: t_ns,
        ended: ended.to_string(),
        host: host::inventory(root),
        ..Meta::default()
    };
    let mut gaps = samplers.gaps();
    gaps.extend(unseen(&before, &found, &counters));
    gaps.extend(throttled.gap());
    Recording { meta, tables: tables(root, &found, &shares, counters, gaps, (start_ns, t_ns)) }
}

fn length_ns(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// Samples at once and then each second, but for the end; sleeps in pieces short enough to hear `stop`.
fn sample_until(
    length: Duration,
    start_ns: u64,
    samplers: &mut Samplers,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> Vec<Counter> {
    let elapsed = || Duration::from_nanos(monotonic_ns() - start_ns);
    let mut rows = samplers.sample(0);
    let mut next = SAMPLE_EVERY;
    while elapsed() < length && !stop.load(Ordering::Relaxed) {
        if elapsed() >= next {
            rows.extend(samplers.sample(length_ns(elapsed())));
            next += SAMPLE_EVERY;
        }
        std::thread::sleep(length.min(next).saturating_sub(elapsed()).min(STOP_HEARD));
        progress(elapsed());
    }
    progress(elapsed()); // the time may have run out since the last word
    rows
}

fn tables(
    root: &Path,
    found: &Difference,
    throttled: &BTreeMap<u32, u64>,
    counters: Vec<Counter>,
    gaps: Vec<Gap>,
    (start_ns, t_ns): (u64, u64),
) -> Tables {
    // A kernel thread that did nothing says nothing; there are hundreds.
    // Our own look is a cost, not a finding.
    let own = std::process::id();
    let shown = || found.ran.iter().filter(|r| r.pid != own && (!r.kernel || r.cpu_ns > 0 || r.run_delay_ns > 0));
    let pids: Vec<u32> = shown().map(|ran| ran.pid).collect();
    let mut tables = Tables::default();
    let born_ns: BTreeMap<u32, u64> = shown().filter_map(|ran| Some((ran.pid, ran.born_ns?))).collect();
    tables.extend(processes(root, &pids).into_iter().map(|row| Process {
        // 0 says that it was there before us; a start that rounds to our own is 1.
        started_ns: born_ns.get(&row.pid).map_or(0, |born| born.saturating_sub(start_ns).max(1)),
        ..row
    }));
    tables.extend(shown().map(|ran| thread(ran, throttled.get(&ran.pid).copied().unwrap_or(0), t_ns)));
    tables.extend(counters);
    tables.extend(gaps);
    let own = found.ran.iter().find(|ran| ran.pid == own);
    tables.extend(own.map(|own| Cost { t_ns, what: "user".to_string(), cpu_ns: own.cpu_ns, ..Cost::default() }));
    tables
}

/// One row for all threads of a process.
fn thread(ran: &Ran, throttled_ns: u64, t_ns: u64) -> Thread {
    Thread {
        t_ns,
        pid: ran.pid,
        comm: ran.comm.clone(),
        instances: ran.threads,
        wall_ns: ran.wall_ns,
        cpu_ns: ran.cpu_ns,
        run_queue_ns: ran.run_delay_ns - throttled_ns.min(ran.run_delay_ns),
        throttled_ns: throttled_ns.min(ran.run_delay_ns),
        blocked_ns: ran.wall_ns.saturating_sub(ran.cpu_ns + ran.run_delay_ns),
        ..Thread::default()
    }
}

/// What two snapshots cannot see, with its size where the counters give it.
fn unseen(before: &Snapshot, found: &Difference, counters: &[Counter]) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let gone: u64 = found.gone.values().sum();
    let born = found.ran.iter().filter(|ran| ran.born_ns.is_some()).count();
    if gone > 0 || born > 0 {
        let busy_s = busy_ns(counters) / 1e9;
        let listed_s = found.ran.iter().map(|ran| ran.cpu_ns).sum::<u64>() as f64 / 1e9;
        let part = if busy_s > 0.0 { (1.0 - listed_s / busy_s).clamp(0.0, 1.0) } else { 0.0 };
        let names: Vec<&str> = found.gone.keys().map(String::as_str).take(5).collect();
        let of = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let why = format!(
            "{born} processes started and {gone} ended{of} during the look; the ended ones are in no row: of {busy_s:.2} s \
             of CPU time the listed processes account for {listed_s:.2} s"
        );
        gaps.push(Gap::partial("process", part, why));
    }
    let measured = before.processes.values().flat_map(|seen| seen.threads.values());
    if measured.map(|times| times.cpu_ns).sum::<u64>() == 0 {
        let why =
            "/proc/PID/task/TID/schedstat is missing or empty (needs CONFIG_SCHED_INFO): run queue time is unknown";
        gaps.push(Gap::refused("run_queue", why));
    }
    gaps
}

/// Busy time of all CPUs from the first reading to the last, interrupts included, ns.
fn busy_ns(counters: &[Counter]) -> f64 {
    let of = |key: Key| {
        let is_it = |c: &&Counter| c.source == key.source && c.name == key.name && c.entity == "cpu";
        let mut values = counters.iter().filter(is_it);
        let first = values.next().map_or(0.0, |c| c.value);
        values.next_back().map_or(0.0, |c| c.value - first)
    };
    [stat::USER_NS, stat::NICE_NS, stat::SYSTEM_NS, stat::IRQ_NS, stat::SOFTIRQ_NS].map(of).iter().sum()
}

#[cfg(test)]
mod tests;
