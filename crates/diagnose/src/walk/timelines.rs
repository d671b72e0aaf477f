// SPDX-License-Identifier: Apache-2.0
//! What a thread did in a span of time: its waits one by one, and the rest by the scheduler's counters.

use std::collections::{BTreeMap, BTreeSet};

use recording::tables::{Birth, Process, Thread, Wakeup};

use super::Kind;
use super::births::{At, Births};
use super::ends::Ends;
use super::ran::{self, Ran};
use super::waits::{Wait, by_thread};
use crate::case::Case;
use crate::facts::cpus::Cpus;
use crate::statistics::{ratio, share};

/// Clocks and counters of one moment differ by less, ns.
pub const AT_ONCE_NS: f64 = 50e3;

/// Of a span, in which a thread waited: what ended its last wait came while it had next to nothing else to do, and is hardly there by
/// accident.
pub const IDLE: f64 = 0.9;

/// Starts of a thread, of whoever started it, and so on, that are looked back for.
const MOST_STARTS: usize = 16;

/// Waits by thread, in the order of time.
pub struct Timelines<'r> {
    /// Who started whom.
    pub births: Births<'r>,
    threads: BTreeMap<u32, Vec<Wait<'r>>>,
    /// Those of each process.
    by_process: BTreeMap<u32, Vec<u32>>,
    /// Of the target's threads, by slice of the ledger: its begin, its end, and for how long it ran or wanted to, ns.
    ran: BTreeMap<u32, Vec<Ran>>,
    /// How long each thread had waited by the begin of each of them, and by the end of the last, ns.
    waited: BTreeMap<u32, Vec<f64>>,
    /// Threads outside the target without any row that ended waits themselves.
    restless: BTreeMap<u32, Restless>,
    /// Of the target's threads: of the time in which each wanted a CPU, the share without one.
    queued: BTreeMap<u32, f64>,
    /// Likewise the share of all their time in which they wanted one.
    awake: BTreeMap<u32, f64>,
}

/// A thread that ended somebody's wait, was followed from then on, and never waited itself: it has always something to do.
struct Restless {
    /// When it was met, ns after the capture's start.
    met: f64,
    /// Share of the time in which its process was on a CPU, by the clock. The rest is unknown: only waits are recorded.
    busy: f64,
}

/// A wait, cut to a span.
pub struct Part<'r> {
    /// The wait's row.
    pub row: &'r Wakeup,
    /// What of it lies in the span, ns.
    pub span: (f64, f64),
    /// Whether a signal ended it.
    pub cut: bool,
}

impl Part<'_> {
    /// How much that is, ns.
    pub fn length(&self) -> f64 {
        self.span.1 - self.span.0
    }
}

/// What a thread did in a span; waits and active time add up to it.
#[derive(Default)]
pub struct Activity<'r> {
    /// Waits that were picked.
    pub waits: Vec<Part<'r>>,
    /// The rest, ns.
    pub active: BTreeMap<Kind, f64>,
}

impl<'r> Timelines<'r> {
    pub fn new(case: &'r Case<'r>, rows: &'r [Wakeup], ends: &Ends<'_>) -> Self {
        let threads = by_thread(rows, ends);
        let restless = restless(case, rows, ends, &threads);
        let waited = threads.iter().map(|(tid, waits)| (*tid, added_up(waits))).collect();
        let (queued, awake) = wanted(case);
        let mut by_process: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (tid, waits) in &threads {
            if let Some(wait) = waits.first() {
                by_process.entry(wait.row.pid).or_default().push(*tid);
            }
        }
        let births = Births::new(case.recording.rows::<Birth>());
        Self { births, threads, by_process, ran: wanted_by_slice(case), waited, restless, queued, awake }
    }

    /// All waits, by thread.
    pub fn waits(&self) -> impl Iterator<Item = &Wait<'r>> {
        self.threads.values().flatten()
    }

    /// The waits of a thread.
    pub fn waits_of(&self, tid: u32) -> &[Wait<'r>] {
        self.threads.get(&tid).map_or(&[][..], Vec::as_slice)
    }

    /// The threads of a process that ever waited, and their names.
    pub fn threads_of(&self, pid: u32) -> impl Iterator<Item = (u32, &str)> {
        let all = self.by_process.get(&pid).map_or(&[][..], Vec::as_slice).iter();
        all.filter_map(|tid| Some((*tid, self.waits_of(*tid).first()?.row.comm.as_str())))
    }

    /// For how long a thread can have run, or wanted to, in a span, ns: no row tells of one that has ended, or that stands in a wait which
    /// goes on, but the ledger does. It has no row of those that lived shortly: they did nothing after their last wait.
    pub fn ran_at_most(&self, tid: u32, span: (f64, f64)) -> f64 {
        match self.ran.get(&tid) {
            Some(slices) => ran::at_most(slices, span),
            None if self.waits_of(tid).last().is_some_and(|wait| wait.end() <= span.0) => 0.0,
            None => f64::INFINITY,
        }
    }

    /// The last wait of a thread that ended by then.
    pub fn last_wait(&self, tid: u32, by: f64) -> Option<&Wait<'r>> {
        let waits = self.waits_of(tid);
        waits.get(waits.partition_point(|wait| wait.end() <= by).checked_sub(1)?)
    }

    /// The first wait of a thread that ended later.
    pub fn next_wait(&self, tid: u32, after: f64) -> Option<&Wait<'r>> {
        let waits = self.waits_of(tid);
        waits.get(waits.partition_point(|wait| wait.end() <= after))
    }

    /// Whether a thread was awake at some time, as far as is known.
    pub fn is_awake(&self, tid: u32, at: f64) -> bool {
        self.next_wait(tid, at).is_none_or(|wait| wait.begin() > at - AT_ONCE_NS)
    }

    /// How much of a span a thread waited, ns. Many requests wait through the same waits, so that these are not added up for each.
    pub fn asleep(&self, tid: u32, (from, until): (f64, f64)) -> f64 {
        let (waits, Some(waited)) = (self.waits_of(tid), self.waited.get(&tid)) else { return 0.0 };
        let first = waits.partition_point(|wait| wait.end() <= from);
        let last = waits.partition_point(|wait| wait.begin() < until).max(first);
        let before = waits.get(first).filter(|_| last > first).map_or(0.0, |wait| (from - wait.begin()).max(0.0));
        let after = waits[first..last].last().map_or(0.0, |wait| (wait.end() - until).max(0.0));
        (waited[last] - waited[first] - before - after).max(0.0)
    }

    /// The same as [`Self::activity`] of whoever had at each moment what a thread had in the end: before its start, that was the one that
    /// started it, unless it serves clients: such a one starts a worker, and goes on.
    pub fn handed_on(&self, tid: u32, (from, until): (f64, f64), serves: impl Fn(u32) -> bool) -> Activity<'r> {
        let (mut pieces, mut at) = (Vec::new(), At { tid, ns: until });
        for _ in 0..MOST_STARTS {
            let before =
                Some(self.births.before(at, from)).filter(|before| before.tid == at.tid || !serves(before.tid));
            let before = before.unwrap_or(At { ns: from, ..at });
            pieces.push(self.activity(at.tid, (before.ns, at.ns)));
            at = before;
            if at.ns <= from {
                break;
            }
        }
        let mut all = Activity::default();
        for piece in pieces.into_iter().rev() {
            all.waits.extend(piece.waits);
            piece.active.into_iter().for_each(|(kind, ns)| all.add(kind, ns));
        }
        all.add(Kind::Unseen, at.ns - from);
        all
    }

    /// What thread `tid` did from the span's begin to its end.
    pub fn activity(&self, tid: u32, (from, until): (f64, f64)) -> Activity<'r> {
        let waits = self.waits_of(tid);
        let first = waits.partition_point(|wait| wait.end() <= from);
        let mut activity = Activity::default();
        let mut at = from;
        for (nth, wait) in waits.iter().enumerate().skip(first) {
            let seen_from = wait.first.since_ns as f64;
            if nth == 0 && at < seen_from {
                activity.add(Kind::Unseen, seen_from.min(until) - at);
                at = seen_from.min(until);
            }
            let asleep = wait.begin().clamp(at, until);
            activity.add_period(wait.first, asleep - at);
            at = wait.end().clamp(asleep, until);
            if at > asleep {
                activity.waits.push(Part { row: wait.row, span: (asleep, at), cut: wait.cut });
            }
            if at >= until {
                return activity;
            }
        }
        // After its last row it has not waited for long: it is the one that ended the wait.
        let busy = if waits.is_empty() { self.busy(tid, (at, until)) } else { 1.0 };
        // No row says how much of it was spent before a CPU; the ledger knows the usual share.
        let queued = self.queued.get(&tid).copied().unwrap_or(0.0);
        activity.add(Kind::OnCpu, (until - at) * busy * (1.0 - queued));
        activity.add(Kind::RunQueue, (until - at) * busy * queued);
        activity.add(Kind::Unseen, (until - at) * (1.0 - busy));
        activity
    }

    /// Share of a span in which a thread without any row was on a CPU or wanted one, as far as is known. One of the target's
    /// never waited: that can be told by its ledger.
    fn busy(&self, tid: u32, (from, until): (f64, f64)) -> f64 {
        if let Some(share) = self.awake.get(&tid) {
            let born = self.births.before(At { tid, ns: until }, from).ns;
            return *share * ratio(until - born, until - from);
        }
        self.restless.get(&tid).map_or(0.0, |thread| thread.busy * share(until - thread.met.max(from), until - from))
    }
}

/// The lengths of waits, added up.
fn added_up(waits: &[Wait<'_>]) -> Vec<f64> {
    let mut sum = 0.0;
    let each = waits.iter().map(|wait| {
        sum += wait.end() - wait.begin();
        sum
    });
    std::iter::once(0.0).chain(each).collect()
}

impl Activity<'_> {
    fn add(&mut self, kind: Kind, ns: f64) {
        if ns > 0.0 {
            *self.active.entry(kind).or_default() += ns;
        }
    }

    /// Adds time between two rows outside the picked wait, split as the counters of the later row say.
    fn add_period(&mut self, row: &Wakeup, ns: f64) {
        let short = row.blocked_ns.saturating_sub(row.wait_ns) as f64;
        let parts = [(Kind::OnCpu, row.cpu_ns as f64), (Kind::RunQueue, row.run_queue_ns as f64), (Kind::Short, short)];
        let sum: f64 = parts.iter().map(|(_, ns)| ns).sum();
        if sum <= 0.0 {
            return self.add(Kind::OnCpu, ns);
        }
        for (kind, part) in parts {
            self.add(kind, ns * part / sum);
        }
    }
}

/// The threads of the target that were started in bursts.
fn of_target(case: &Case) -> Vec<u32> {
    let mut pids: BTreeSet<u32> = case.recording.meta.target.pids.iter().copied().collect();
    pids.extend(case.recording.rows::<Process>().iter().map(|process| process.pid));
    let mut births: Vec<&Birth> = case.recording.rows::<Birth>().iter().collect();
    births.sort_by_key(|birth| birth.t_ns);
    let mut own = Vec::new();
    for birth in births {
        if pids.contains(&birth.parent_pid) {
            pids.insert(birth.pid);
            own.push(birth.tid);
        }
    }
    own
}

/// By thread of the target: of the time in which it wanted a CPU, the share without one; of all its time, the share in which
/// it wanted one.
fn wanted(case: &Case) -> (BTreeMap<u32, f64>, BTreeMap<u32, f64>) {
    let mut threads: BTreeMap<u32, (f64, f64, f64)> = BTreeMap::new();
    for row in case.recording.rows::<Thread>() {
        let (queued, wanted, wall) = threads.entry(row.tid).or_default();
        let without = (row.run_queue_ns + row.preempted_ns) as f64;
        *queued += without;
        *wanted += without + row.cpu_ns as f64;
        *wall += row.wall_ns as f64;
    }
    let queued = threads.iter().map(|(tid, (queued, wanted, _))| (*tid, share(*queued, *wanted)));
    let awake = threads.iter().map(|(tid, (_, wanted, wall))| (*tid, share(*wanted, *wall)));
    // Of one that lived shortly the ledger has no row of its own; had it waited in the burst in which it was started, there would be
    // one of that.
    let (queued, born): (BTreeMap<u32, f64>, _) = (queued.collect(), of_target(case));
    let short_lived = queued.get(&0).copied().unwrap_or(0.0);
    let queued_of_born = born.iter().map(|tid| (*tid, short_lived)).chain(queued).collect();
    (queued_of_born, born.iter().map(|tid| (*tid, 1.0)).chain(awake).collect())
}

/// By thread of the target: what it ran or wanted to, by slice.
fn wanted_by_slice(case: &Case) -> BTreeMap<u32, Vec<Ran>> {
    let mut threads: BTreeMap<u32, Vec<Ran>> = BTreeMap::new();
    for row in case.recording.rows::<Thread>().iter().filter(|row| row.tid != 0) {
        let wanted = row.cpu_ns.saturating_add(row.run_queue_ns).saturating_add(row.preempted_ns);
        threads.entry(row.tid).or_default().push(Ran::of(row, wanted));
    }
    threads.values_mut().for_each(|slices| slices.sort_by(|a, b| a.end().total_cmp(&b.end())));
    threads
}

fn restless(
    case: &Case,
    rows: &[Wakeup],
    ends: &Ends<'_>,
    threads: &BTreeMap<u32, Vec<Wait<'_>>>,
) -> BTreeMap<u32, Restless> {
    let samples = f64::from(case.recording.meta.target.sample_hz) * case.length_ns() / 1e9;
    let Ok(cpus) = case.fact::<Cpus>() else { return BTreeMap::new() };
    let others = cpus.neighbours.iter().filter(|other| other.pid != 0);
    let busy: BTreeMap<u32, f64> = others.map(|other| (other.pid, share(other.samples, samples))).collect();
    let mut found: BTreeMap<u32, Restless> = BTreeMap::new();
    for row in rows.iter().filter(|row| !threads.contains_key(&row.waker_tid) && ends.of(row).is_none()) {
        let Some(&busy) = busy.get(&row.waker_pid) else { continue };
        let met = row.t_ns as f64;
        let thread = found.entry(row.waker_tid).or_insert(Restless { met, busy });
        thread.met = thread.met.min(met);
    }
    found
}
