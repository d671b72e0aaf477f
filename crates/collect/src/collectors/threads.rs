// SPDX-License-Identifier: Apache-2.0
//! The thread ledger: from sums since the watch began to rows of single slices.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use recording::Tables;
use recording::tables::{Process, Thread};

use crate::collector::{Collector, Kind, Shared, SliceEnd};
use crate::probes::Probe;
use crate::probes::ledger::{ThreadRow, Totals};

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "thread",
    facility: Some(("thread ledger", "where every thread's time goes; nothing can be diagnosed without it")),
    tables: |_| (),
    start: |_, _| Ok(Box::new(Threads::default())),
};

/// What is written of the ledger, which is shared with all others.
#[derive(Default)]
struct Threads {
    slices: Slices,
}

impl Collector for Threads {
    fn begin(&mut self, shared: &mut Shared<'_>, _: &mut Tables) -> Result<()> {
        self.slices = Slices::new(shared.start_ns);
        Ok(())
    }

    fn slice(&mut self, _: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        tables.extend(self.slices.rows(end.t_ns, &end.living, &end.ended));
        Ok(())
    }

    fn finish(&mut self, shared: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        tables.extend(self.slices.brief_processes());
        // The time of threads whose own end row found no room: lost by name, not by amount.
        let counts = shared.ledger.counts()?;
        if counts.exits_lost == 0 {
            return Ok(());
        }
        let mut row = Thread { t_ns: end.t_ns, comm: "(ended, name lost)".into(), ..Thread::default() };
        add(&mut row, &self.slices.not_yet_reported(&counts.lost));
        row.instances = counts.exits_lost;
        tables.extend([row]);
        Ok(())
    }

    fn probe<'a>(&'a self, shared: &'a Shared<'_>) -> Option<&'a dyn Probe> {
        Some(&shared.ledger)
    }

    fn probe_mut<'a>(&'a mut self, shared: &'a mut Shared<'_>) -> Option<&'a mut dyn Probe> {
        Some(&mut shared.ledger)
    }

    /// All others build on it.
    fn stop(&mut self, _: &mut Shared<'_>) -> bool {
        false
    }
}

/// Remembers what was already reported.
#[derive(Default)]
pub struct Slices {
    start_ns: u64,
    /// By number, with the thread's birth: of one whose end was lost, the number may be another one's by now.
    reported: HashMap<u32, (u64, Totals)>,
    /// Of those whose number is another one's.
    replaced: Vec<Totals>,
    /// Threads of the last slice.
    present: HashSet<u32>,
    /// Short-lived processes by name, for table `process`.
    brief: HashMap<String, (u32, u64)>,
}

impl Slices {
    /// Nothing was reported yet.
    pub fn new(start_ns: u64) -> Self {
        Self { start_ns, ..Self::default() }
    }

    /// Rows of the slice that ends at `t_ns`. Threads that were born and ended between two slices
    /// share one row per name: a service that forks all the time must not fill the recording.
    pub fn rows(&mut self, t_ns: u64, living: &[ThreadRow], ended: &[ThreadRow]) -> Vec<Thread> {
        let mut rows = Vec::new();
        let mut brief: HashMap<&str, Thread> = HashMap::new();
        for row in ended {
            let is_reported = self.reported.get(&row.tid).is_some_and(|(born_ns, _)| *born_ns == row.born_ns);
            if row.born_ns >= self.start_ns && !is_reported {
                self.count_brief(row);
                let sum = brief.entry(&row.comm).or_insert_with(|| Thread {
                    t_ns,
                    comm: row.comm.clone(),
                    ..Thread::default()
                });
                add(sum, &row.sum);
            } else {
                rows.extend(self.difference(t_ns, row));
                self.reported.remove(&row.tid);
            }
        }
        rows.extend(living.iter().filter_map(|row| self.difference(t_ns, row)));
        self.present = living.iter().map(|row| row.tid).collect();
        let mut brief: Vec<Thread> = brief.into_values().collect();
        brief.sort_by(|a, b| a.comm.cmp(&b.comm));
        rows.extend(brief);
        rows
    }

    /// What of the time of threads whose end was lost is in no slice: all of it, but for what was
    /// reported of threads that have vanished without an end.
    pub fn not_yet_reported(&self, lost: &Totals) -> Totals {
        let vanished = self.reported.iter().filter(|(tid, _)| !self.present.contains(tid)).map(|(_, (_, told))| told);
        vanished.chain(&self.replaced).fold(*lost, |left, told| Totals {
            wall: left.wall.saturating_sub(told.wall),
            cpu: left.cpu.saturating_sub(told.cpu),
            run_queue: left.run_queue.saturating_sub(told.run_queue),
            preempted: left.preempted.saturating_sub(told.preempted),
            throttled: left.throttled.saturating_sub(told.throttled),
            blocked: left.blocked.saturating_sub(told.blocked),
            interrupted: left.interrupted.saturating_sub(told.interrupted),
            ..left
        })
    }

    fn count_brief(&mut self, row: &ThreadRow) {
        if row.tid == row.tgid {
            let entry = self.brief.entry(row.comm.clone()).or_insert((row.ppid, 0));
            entry.1 += 1;
        }
    }

    /// One row of table `process` for each name of short-lived processes.
    pub fn brief_processes(&self) -> Vec<Process> {
        let mut rows: Vec<Process> = self
            .brief
            .iter()
            .map(|(comm, &(ppid, instances))| Process { ppid, instances, comm: comm.clone(), ..Process::default() })
            .collect();
        rows.sort_by(|a, b| a.comm.cmp(&b.comm));
        rows
    }

    /// What a thread did since it was last reported; `None` if it did not even wait.
    fn difference(&mut self, t_ns: u64, row: &ThreadRow) -> Option<Thread> {
        let last = match self.reported.get(&row.tid) {
            Some((born_ns, last)) if *born_ns == row.born_ns => *last,
            Some((_, last)) => {
                self.replaced.push(*last);
                Totals::default()
            }
            None => Totals::default(),
        };
        let now = &owed(&last, &row.sum);
        self.reported.insert(row.tid, (row.born_ns, *now));
        let thread = Thread {
            t_ns,
            pid: row.tgid,
            tid: row.tid,
            comm: row.comm.clone(),
            instances: 1,
            wall_ns: now.wall.saturating_sub(last.wall),
            cpu_ns: now.cpu.saturating_sub(last.cpu),
            run_queue_ns: now.run_queue.saturating_sub(last.run_queue),
            preempted_ns: now.preempted.saturating_sub(last.preempted),
            throttled_ns: now.throttled.saturating_sub(last.throttled),
            blocked_ns: now.blocked.saturating_sub(last.blocked),
            interrupted_ns: now.interrupted.saturating_sub(last.interrupted),
            voluntary_switches: now.voluntary.saturating_sub(last.voluntary),
            involuntary_switches: now.involuntary.saturating_sub(last.involuntary),
        };
        (thread.wall_ns > 0).then_some(thread)
    }
}

/// The sums up to which a thread is reported now. What it does at the end of a slice is a guess until it leaves its CPU
/// or wakes, so a line can turn out shorter than was reported. Lines that grew wait for it: each slice adds up to its
/// wall time, and later ones make up for it.
fn owed(last: &Totals, now: &Totals) -> Totals {
    let (mut last, mut sums) = (*last, *now);
    let mut excess = 0;
    for (sum, reported) in lines(&mut sums).into_iter().zip(lines(&mut last)) {
        excess += reported.saturating_sub(*sum);
        *sum = (*sum).max(*reported);
    }
    for (sum, reported) in lines(&mut sums).into_iter().zip(lines(&mut last)) {
        let waits = excess.min(*sum - *reported);
        *sum -= waits;
        excess -= waits;
    }
    sums
}

/// What adds up to a thread's wall time; time that nobody had foreseen comes first.
fn lines(sums: &mut Totals) -> [&mut u64; 6] {
    let Totals { wall: _, cpu, run_queue, preempted, throttled, blocked, interrupted, .. } = sums;
    [interrupted, throttled, preempted, run_queue, blocked, cpu]
}

/// Adds a whole thread to a row of several.
fn add(row: &mut Thread, sum: &Totals) {
    row.instances += 1;
    for (line, ns) in [
        (&mut row.wall_ns, sum.wall),
        (&mut row.cpu_ns, sum.cpu),
        (&mut row.run_queue_ns, sum.run_queue),
        (&mut row.preempted_ns, sum.preempted),
        (&mut row.throttled_ns, sum.throttled),
        (&mut row.blocked_ns, sum.blocked),
        (&mut row.interrupted_ns, sum.interrupted),
        (&mut row.voluntary_switches, sum.voluntary),
        (&mut row.involuntary_switches, sum.involuntary),
    ] {
        *line = line.saturating_add(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tid: u32, born_ns: u64, cpu: u64) -> ThreadRow {
        let sum = Totals { wall: cpu * 2, cpu, blocked: cpu, ..Totals::default() };
        ThreadRow { tgid: tid, tid, born_ns, comm: "w".into(), sum, ..ThreadRow::default() }
    }

    #[test]
    fn slices_are_differences_and_brief_threads_share_a_row() {
        let mut slices = Slices::new(100);
        let first = slices.rows(1, &[row(1, 0, 10)], &[row(2, 150, 3), row(3, 150, 4)]);
        assert_eq!(first.iter().map(|t| (t.tid, t.cpu_ns, t.instances)).collect::<Vec<_>>(), [(1, 10, 1), (0, 7, 2)]);
        let second = slices.rows(2, &[], &[row(1, 0, 25)]);
        assert_eq!(second.iter().map(|t| (t.tid, t.cpu_ns)).collect::<Vec<_>>(), [(1, 15)]);
        assert_eq!(slices.brief_processes()[0].instances, 2);
    }

    /// Lines are guesses at the end of a slice.
    #[test]
    fn every_slice_adds_up() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..1000 {
            let (mut slices, mut wall, mut told) = (Slices::new(0), 0, 0);
            for _ in 0..8 {
                let (cpu, blocked) = (rng.u64(0..=wall), rng.u64(0..1000));
                wall = wall.max(cpu + blocked) + rng.u64(0..1000);
                let sum = Totals { wall, cpu, blocked, run_queue: wall - cpu - blocked, ..Totals::default() };
                let row = ThreadRow { tid: 1, sum, ..ThreadRow::default() };
                for t in slices.rows(1, &[row], &[]) {
                    assert_eq!(t.cpu_ns + t.run_queue_ns + t.blocked_ns, t.wall_ns);
                    told += t.wall_ns;
                }
            }
            assert_eq!(told, wall);
        }
    }

    #[test]
    fn what_was_reported_too_early_is_made_up_for() {
        let mut slices = Slices::new(0);
        let row = |sum| ThreadRow { tid: 1, sum, ..ThreadRow::default() };
        slices.rows(1, &[row(Totals { wall: 100, cpu: 100, ..Totals::default() })], &[]);
        let stolen = Totals { wall: 150, cpu: 60, interrupted: 90, ..Totals::default() };
        let second = &slices.rows(2, &[row(stolen)], &[])[0];
        assert_eq!((second.wall_ns, second.cpu_ns, second.interrupted_ns), (50, 0, 50));
        let busy = Totals { wall: 250, cpu: 160, interrupted: 90, ..Totals::default() };
        let third = &slices.rows(3, &[row(busy)], &[])[0];
        assert_eq!((third.wall_ns, third.cpu_ns, third.interrupted_ns), (100, 60, 40));
    }

    #[test]
    fn time_of_a_lost_end_is_told_once() {
        let mut slices = Slices::new(100);
        slices.rows(1, &[row(1, 0, 10), row(2, 0, 5)], &[]);
        slices.rows(2, &[row(2, 0, 9)], &[]); // 1 ended at 12, and nobody heard of it
        let lost = slices.not_yet_reported(&row(1, 0, 12).sum);
        assert_eq!((lost.cpu, lost.wall, lost.blocked), (2, 4, 2));
    }

    /// 5 ended at 12, nobody heard of it, and another one has its number.
    #[test]
    fn a_number_whose_end_was_lost_starts_anew() {
        let mut slices = Slices::new(100);
        slices.rows(1, &[row(5, 120, 10)], &[]);
        assert_eq!(slices.rows(2, &[row(5, 300, 2)], &[])[0].cpu_ns, 2);
        assert_eq!(slices.rows(3, &[], &[row(5, 300, 3)])[0].cpu_ns, 1);
        assert_eq!(slices.not_yet_reported(&row(5, 120, 12).sum).cpu, 2);
    }

    #[test]
    fn a_reused_thread_id_starts_anew() {
        let mut slices = Slices::new(100);
        slices.rows(1, &[row(5, 120, 10)], &[]);
        slices.rows(2, &[], &[row(5, 120, 11)]);
        assert_eq!(slices.rows(3, &[row(5, 300, 2)], &[])[0].cpu_ns, 2);
    }
}
