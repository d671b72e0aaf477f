// SPDX-License-Identifier: Apache-2.0
//! When to count system calls. A hook on calls slows every process of the host, so windows are short,
//! take three percent of the capture at most, and open only if the samples call for them.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use libbpf_rs::{MapCore, OpenObject};
use recording::Writer;
use recording::tables::{CallWindow, Gap};

use super::lazy::Lazy;
use crate::clock;
use crate::collector::Kept;
use crate::hooks;
use crate::probes::calls::{self, Calls, Kind};
use crate::probes::run_stats::{self, Runs};
use crate::probes::shapes;

/// Length of one window; long enough for hundreds of calls of any loop that burns CPU.
const LENGTH: Duration = Duration::from_millis(30);
/// Share of the capture that windows may take together.
const BUDGET: f64 = 0.03;
/// From one window's start to the next one's.
const SPACING: Duration = Duration::from_secs(1);
/// Samples before a thread's calls are judged.
const ENOUGH_SAMPLES: u64 = 5;
/// Share of a thread's samples that must be in asking calls.
const ASKING_SHARE: f64 = 0.1;

/// When windows may open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallCounting {
    /// If the samples show a thread that keeps asking (polls, reads, yields, short sleeps).
    #[default]
    Auto,
    /// In any case.
    Always,
    /// Not at all.
    Never,
}

/// What samples say about asking calls, by thread, and by process: a hundred threads that ask a little each have
/// hardly a sample each.
#[derive(Debug, Default)]
pub struct Suspicion {
    threads: HashMap<u32, Seen>,
    processes: HashMap<u32, Seen>,
}

/// Samples of a thread or a process.
#[derive(Debug, Default)]
struct Seen {
    all: u64,
    asking: u64,
}

impl Seen {
    /// Whether a good part of them is in calls that ask.
    fn is_suspect(&self) -> bool {
        self.all >= ENOUGH_SAMPLES && self.asking as f64 >= self.all as f64 * ASKING_SHARE
    }
}

impl Suspicion {
    /// Takes note of one sample: its process and thread, the call it is in, and whether it has just left one.
    pub fn see(&mut self, pid: u32, tid: u32, syscall: i32, after_call: bool) {
        let asks = after_call || usize::try_from(syscall).is_ok_and(|nr| shapes::of(nr).asks);
        for seen in [self.threads.entry(tid).or_default(), self.processes.entry(pid).or_default()] {
            seen.all += 1;
            seen.asking += u64::from(asks);
        }
    }

    /// Whether any thread or process spends a good part of its CPU time in calls that ask.
    fn is_raised(&self) -> bool {
        self.threads.values().chain(self.processes.values()).any(Seen::is_suspect)
    }
}

/// A window that is open.
struct Open {
    window: calls::Window,
    id: u32,
    kind: Kind,
    from_ns: u64,
    price_ns: u64,
    stats: Option<run_stats::Slice>,
}

/// Opens windows within the budget and writes what they counted.
pub struct Windows<'o> {
    /// Loaded for the first window, because most captures open none.
    programs: Lazy<'o, Calls<'o>>,
    open: Option<Open>,
    mode: CallCounting,
    length: Duration,
    start_ns: u64,
    next: Duration,
    opened: u32,
    spent: Duration,
    hits: u64,
    lost: u64,
    seen: u64,
    /// Of all calls of anybody in windows, by what one of our own took longer, ns.
    paid_ns: u64,
    priced: HashMap<&'static str, Runs>,
}

impl<'o> Windows<'o> {
    pub fn new(storage: &'o mut MaybeUninit<OpenObject>, mode: CallCounting, length: Duration, start_ns: u64) -> Self {
        // Half a second past the start of a slice, so that a window never meets its reading.
        let next = (length / 5).min(Duration::from_millis(1500));
        let (opened, hits, lost, seen, paid_ns) = (0, 0, 0, 0, 0);
        Self {
            programs: Lazy::NotLoaded(storage),
            open: None,
            mode,
            length,
            start_ns,
            next,
            opened,
            spent: Duration::ZERO,
            hits,
            lost,
            seen,
            paid_ns,
            priced: HashMap::new(),
        }
    }

    /// Closes the window whose time is up, or opens one if it is due, called for and affordable.
    pub fn tick(
        &mut self,
        threads: &impl MapCore,
        root: &Path,
        writer: &mut Writer,
        suspicion: &Suspicion,
    ) -> Result<()> {
        if self.open.is_some() {
            return if self.closes_in().is_none_or(|left| left.is_zero()) { self.close(writer) } else { Ok(()) };
        }
        let now = Duration::from_nanos(clock::monotonic_ns() - self.start_ns);
        let wanted = match self.mode {
            CallCounting::Auto => suspicion.is_raised(),
            CallCounting::Always => true,
            CallCounting::Never => false,
        };
        let affordable = (self.spent + LENGTH).as_secs_f64() <= self.length.as_secs_f64() * BUDGET;
        if !wanted || now < self.next || !affordable || now + LENGTH > self.length {
            return Ok(());
        }
        self.next = now + SPACING;
        let load = |storage| Calls::load(storage, threads).map_err(|e| hooks::explain(root, &calls::HOOKS, e));
        if self.programs.get(load).is_some() { self.open() } else { Ok(()) }
    }

    /// In what time the open window wants to be closed; `None` = none is open.
    pub fn closes_in(&self) -> Option<Duration> {
        let open = self.open.as_ref()?;
        Some(LENGTH.saturating_sub(Duration::from_nanos(clock::monotonic_ns().saturating_sub(open.from_ns))))
    }

    /// That calls are not counted although they should be.
    pub fn gap(&self) -> Option<Gap> {
        self.programs.refused().map(|why| Gap::refused("call", why))
    }

    fn open(&mut self) -> Result<()> {
        let Some(calls) = self.programs.loaded_mut() else { return Ok(()) };
        self.opened += 1;
        let id = self.opened;
        let kind = if id.is_multiple_of(3) { Kind::Latency } else { Kind::Results };
        let stats = if id == 1 || id == 3 { run_stats::start().ok() } else { None };
        let usual_ns = own_call_ns();
        let window = calls.open(kind)?;
        let from_ns = clock::monotonic_ns();
        let price_ns = own_call_ns().saturating_sub(usual_ns);
        self.open = Some(Open { window, id, kind, from_ns, price_ns, stats });
        Ok(())
    }

    /// Closes the open window, if there is one, and writes what it counted.
    pub fn close(&mut self, writer: &mut Writer) -> Result<()> {
        let (Some(open), Some(calls)) = (self.open.take(), self.programs.loaded_mut()) else { return Ok(()) };
        let Open { window, id, kind, from_ns, price_ns, stats } = open;
        let counted = calls.close(window, id, self.start_ns)?;
        let length_ns = clock::monotonic_ns() - from_ns;
        drop(stats);
        self.price();
        self.spent += Duration::from_nanos(length_ns);
        // Both hooks run on a call whose time is taken; only the exit counts its hits.
        self.hits += counted.hits * if kind == Kind::Latency { 2 } else { 1 };
        self.paid_ns += counted.hits * price_ns;
        self.lost += counted.lost;
        self.seen += counted.seen;
        writer.append(&[CallWindow {
            id,
            kind: if kind == Kind::Latency { "latency" } else { "results" }.into(),
            t_ns: from_ns.saturating_sub(self.start_ns),
            length_ns,
            calls: counted.seen,
            lost: counted.lost,
            price_ns,
        }])?;
        writer.append(&counted.calls)?;
        writer.append(&counted.latencies)?;
        writer.append(&counted.examples)
    }

    fn price(&mut self) {
        if let Some(calls) = self.programs.loaded() {
            self.priced.extend(calls.programs().into_iter().map(|(name, program)| (name, run_stats::read(program))));
        }
    }

    /// Calls kept and lost.
    pub fn loss(&self) -> Kept {
        Kept::of("counted calls", self.seen, self.lost)
    }

    /// Runs of the hooks on all processes, and ns of one run. The programs' own time leaves out the
    /// long way through the kernel that every call takes once there is a hook, and what calls of
    /// ours paid leaves out the counting; the higher of the two is nearer to the truth.
    pub fn runs(&self) -> (u64, f64) {
        let (count, ns) = self.priced.values().fold((0, 0), |sum, r| (sum.0 + r.count, sum.1 + r.ns));
        let per_run = |ns: u64, runs: u64| if runs == 0 { 0.0 } else { ns as f64 / runs as f64 };
        (self.hits, per_run(ns, count).max(per_run(self.paid_ns, self.hits)))
    }

    /// Kernel memory of the maps, bytes.
    pub fn map_bytes(&self) -> u64 {
        self.programs.loaded().map_or(0, Calls::map_bytes)
    }
}

/// What a system call of this process takes, ns: the best of a few batches, because one in which
/// the CPU was lost tells nothing.
fn own_call_ns() -> u64 {
    const BATCHES: u32 = 8;
    const CALLS: u64 = 100;
    let batch = |_| {
        let from = clock::monotonic_ns();
        for _ in 0..CALLS {
            std::hint::black_box(parent_id()); // the C library does not remember the answer
        }
        (clock::monotonic_ns() - from) / CALLS
    };
    (0..BATCHES).map(batch).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspicion(polls: u64, others: u64) -> bool {
        let mut s = Suspicion::default();
        for _ in 0..polls {
            s.see(1, 1, libc::SYS_epoll_wait as i32, false);
        }
        for _ in 0..others {
            s.see(1, 1, -1, false);
        }
        s.is_raised()
    }

    #[test]
    fn a_thread_that_keeps_asking_raises_suspicion() {
        assert!(suspicion(6, 4));
        assert!(!suspicion(1, 30), "asking is a small part of its time");
        assert!(!suspicion(2, 0), "too few samples");
    }

    #[test]
    fn many_threads_that_ask_a_little_raise_it_together() {
        let mut s = Suspicion::default();
        for tid in 1..=5 {
            s.see(1, tid, libc::SYS_recvfrom as i32, false);
        }
        assert!(s.is_raised());
    }
}
