// SPDX-License-Identifier: Apache-2.0
//! What a client could not do: then the numbers are its own.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::reason::Reason;
use crate::reasons::{FAILED, reason, time};
use crate::run::{Failure, Run};
use crate::verdict::Verdict;

/// The client's own lateness, of what it measures, beyond which it measures itself; shorter ones are never felt.
const LAG_SHARE: f64 = 0.1;
const LAG: f64 = 100e-6;
/// Of a CPU, or of all that it may use: a client that needs so much is at its limit.
const FULL: f64 = 0.9;
/// Of a CPU, what a thread wanted at least if it matters that it did not get it.
const STARVED: f64 = 0.5;

/// What a client, or a thread of it, took of CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// CPU time.
    pub cpu: Duration,
    /// How long it waited for one, or was held by a quota.
    pub waited: Duration,
}

impl Spent {
    /// Of the calling thread.
    pub(crate) fn now() -> Self {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let waited = text.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()).unwrap_or_default();
        let cpu = Duration::new(cpu.tv_sec.unsigned_abs(), u32::try_from(cpu.tv_nsec).unwrap_or_default());
        Self { cpu, waited: Duration::from_nanos(waited) }
    }

    /// Both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, waited: self.waited + other.waited }
    }

    /// What came to it since.
    pub(crate) fn since(self, before: Self) -> Self {
        Self { cpu: self.cpu.saturating_sub(before.cpu), waited: self.waited.saturating_sub(before.waited) }
    }
}

/// What was taken within a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// How much.
    pub spent: Spent,
    /// Of how long.
    pub within: Duration,
}

impl Taken {
    /// CPUs that it took, and CPUs that it waited for.
    pub(crate) fn shares(&self) -> [f64; 2] {
        let within = self.within.as_secs_f64().max(1e-9);
        [self.spent.cpu, self.spent.waited].map(|time| time.as_secs_f64() / within)
    }
}

/// What a client took while it asked. Until then it may sleep or warm up, and afterwards it waits for the last answers: of all that time
/// a thread that has no CPU left takes a part only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads {
    /// The thread that wanted most.
    pub busiest: Taken,
    /// All of them.
    pub all: Taken,
    /// CPUs that it may use; 0 = that is not known, or it is one thread.
    pub cpus: f64,
}

impl Threads {
    /// Those of a run; where it does not tell when it asked, in one thread over all of its time.
    pub(crate) fn of(run: &Run) -> Self {
        let all = Taken { spent: run.spent, within: run.lasted };
        run.threads.unwrap_or(Self { busiest: all, all, cpus: 0.0 })
    }
}

/// Failures that are its own: by which code and in which words they are told.
const OWN: [(Failure, &str, &str); 3] = [
    (
        Failure::NoPort,
        "no-port",
        "found no local port; --source-addresses takes more addresses, without --new-connections fewer are needed",
    ),
    (Failure::NoDescriptor, "no-descriptor", "found no file descriptor"),
    (Failure::Unsent, "unsent", "were never sent: it was behind its plan by more than their timeout"),
];

/// Why the client could not do what it should.
pub(crate) fn client_limits(verdict: &Verdict, run: &Run) -> Vec<Reason> {
    let mut reasons = Vec::new();
    reasons.extend(late(verdict, run));
    let of_one = in_one_thread(run);
    reasons.extend(if of_one.is_empty() { in_all_threads(run) } else { of_one });
    for (failure, code, what) in OWN {
        let count = run.failures.get(&failure).copied().unwrap_or_default();
        if count as f64 > FAILED * run.due as f64 {
            reasons.extend(reason(code, format!("{count} requests {what}")));
        }
    }
    reasons
}

/// Whether so much of its own lateness is in what was measured that this is its own.
pub(crate) fn is_late(lag: Option<f64>, measured: Option<f64>) -> bool {
    lag.zip(measured).is_some_and(|(lag, measured)| lag > LAG && lag > LAG_SHARE * measured)
}

/// Whether it noticed too late that requests were due.
fn late(verdict: &Verdict, run: &Run) -> Vec<Reason> {
    let client = &verdict.client;
    let known = [("a p99", verdict.corrected.p99), ("a p90", verdict.corrected.p90), ("a p50", verdict.corrected.p50)];
    let measured = known.into_iter().find_map(|(name, seconds)| Some((name, seconds?)));
    let (share, lag) = match (client.lag.p99, client.lag.p90) {
        (Some(lag), _) => ("one request in a hundred", lag),
        (None, lag) => ("one request in ten", lag.unwrap_or_default()),
    };
    if let Some((name, measured)) = measured.filter(|(_, measured)| lag > LAG && lag > LAG_SHARE * measured) {
        let starved = if client.waited_for_cpu > LAG_SHARE {
            format!(": it waited for a CPU in {:.0} % of the time", client.waited_for_cpu * 100.0)
        } else {
            String::new()
        };
        let sentence =
            format!("{} noticed {share} {} too late, beside {name} of {}{starved}", run.who, time(lag), time(measured));
        return reason("late", sentence);
    }
    Vec::new()
}

/// Whether it could do no more.
pub(crate) fn is_full(run: &Run) -> bool {
    !in_one_thread(run).is_empty() || !in_all_threads(run).is_empty()
}

/// Whether one thread could do no more: the others wait for it, or are full too.
fn in_one_thread(run: &Run) -> Vec<Reason> {
    at_its_limit(run, Threads::of(run).busiest, (1.0, STARVED), "a CPU in one thread")
}

/// Whether all of them together could: a runtime that deals its work out to many has none that is full by itself.
fn in_all_threads(run: &Run) -> Vec<Reason> {
    let Some(Threads { all, cpus, .. }) = run.threads.filter(|threads| threads.cpus > 0.0) else { return Vec::new() };
    let of = if cpus == 1.0 { "the CPU".into() } else { format!("the {cpus} CPUs") };
    at_its_limit(run, all, (cpus, FULL), &format!("{of} that it may use, over all its threads"))
}

/// Whether what was taken of so many CPUs is all of them, or would have been that share of them, had they been free.
fn at_its_limit(run: &Run, taken: Taken, (cpus, starved): (f64, f64), of: &str) -> Vec<Reason> {
    let [took, waited] = taken.shares().map(|share| share / cpus);
    if took > FULL {
        return reason("client-cpu", format!("{} took {:.0} % of {of}", run.who, took * 100.0));
    }
    if took + waited > starved && waited > LAG_SHARE {
        let sentence =
            format!("{} wanted {:.0} % of {of}, and got {:.0} %", run.who, (took + waited) * 100.0, took * 100.0);
        return reason("client-starved", sentence);
    }
    Vec::new()
}
