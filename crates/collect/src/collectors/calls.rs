// SPDX-License-Identifier: Apache-2.0
//! When to count system calls. A hook on calls slows every process of the host, so windows are short,
//! take three percent of the capture at most, and open only if the samples call for them.

use std::collections::HashMap;
use std::mem::take;
use std::os::unix::process::parent_id;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use recording::Tables;
use recording::tables::{CallExample, CallLatency, CallWindow, Cost, Gap};

use crate::account::{Account, cost_of};
use crate::clock;
use crate::collector::{Collector, Kind, Lazy, Shared, SliceEnd, Slot, Start};
use crate::hooks;
use crate::plan::CallCounting;
use crate::probes::Kept;
use crate::probes::calls::{self, Calls, Counted};
use crate::probes::run_stats::{self, Runs};

/// Length of one window; long enough for hundreds of calls of any loop that burns CPU.
const LENGTH: Duration = Duration::from_millis(30);
/// Share of the capture that windows may take together.
const BUDGET: f64 = 0.03;
/// From one window's start to the next one's.
const SPACING: Duration = Duration::from_secs(1);

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "call",
    facility: Some(("counted system calls", "arguments and results; without them a busy poll is `medium` at best")),
    tables: |tables| {
        tables.extend::<CallExample>([]);
        tables.extend::<CallLatency>([])
    },
    start: |start, slot| Ok(Box::new(Windows::new(start, slot))),
};

/// A window that is open.
struct Open {
    window: calls::Window,
    id: u32,
    kind: calls::Kind,
    from_ns: u64,
    price_ns: u64,
    stats: Option<run_stats::Slice>,
}

/// Opens windows within the budget and writes what they counted.
struct Windows<'o> {
    /// Loaded for the first window, because most captures open none.
    programs: Lazy<'o, Calls<'o>>,
    open: Option<Open>,
    /// Windows that were closed since the last slice.
    closed: Vec<(CallWindow, Counted)>,
    mode: CallCounting,
    length: Duration,
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
    fn new(start: &Start<'_, 'o>, slot: Slot<'o>) -> Self {
        let length = start.plan.length;
        Self {
            programs: Lazy::NotLoaded(slot),
            open: None,
            closed: Vec::new(),
            mode: start.plan.calls,
            length,
            // Half a second past the start of a slice, so that a window never meets its reading.
            next: (length / 5).min(Duration::from_millis(1500)),
            opened: 0,
            spent: Duration::ZERO,
            hits: 0,
            lost: 0,
            seen: 0,
            paid_ns: 0,
            priced: HashMap::new(),
        }
    }

    fn programs(&mut self, shared: &Shared<'_>) -> Option<&mut Calls<'o>> {
        let (root, threads) = (&shared.plan.root, shared.ledger.threads());
        self.programs.get(|slot| Calls::load(slot, threads).map_err(|e| hooks::explain(root, &calls::HOOKS, e)))
    }

    /// Whether a window is due, called for and affordable.
    fn wants_one(&self, shared: &Shared<'_>) -> bool {
        let affordable = (self.spent + LENGTH).as_secs_f64() <= self.length.as_secs_f64() * BUDGET;
        let now = shared.elapsed();
        let wanted = || match self.mode {
            CallCounting::Auto => shared.suspicion.is_raised(),
            CallCounting::Always => true,
            CallCounting::Never => false,
        };
        affordable && now >= self.next && now + LENGTH <= self.length && wanted()
    }

    fn open(&mut self) -> Result<()> {
        let Some(calls) = self.programs.loaded_mut() else { return Ok(()) };
        self.opened += 1;
        let id = self.opened;
        let kind = if id.is_multiple_of(3) { calls::Kind::Latency } else { calls::Kind::Results };
        let stats = if id == 1 || id == 3 { run_stats::start().ok() } else { None };
        let usual_ns = own_call_ns();
        let window = calls.open(kind)?;
        let from_ns = clock::monotonic_ns();
        let price_ns = own_call_ns().saturating_sub(usual_ns);
        self.open = Some(Open { window, id, kind, from_ns, price_ns, stats });
        Ok(())
    }

    /// Closes the open window, if there is one, and keeps what it counted.
    fn close(&mut self, start_ns: u64) -> Result<()> {
        let (Some(open), Some(calls)) = (self.open.take(), self.programs.loaded_mut()) else { return Ok(()) };
        let Open { window, id, kind, from_ns, price_ns, stats } = open;
        let counted = calls.close(window, id, start_ns)?;
        let length_ns = counted.closed_ns.saturating_sub(from_ns);
        drop(stats);
        self.priced.extend(calls.programs().into_iter().map(|(name, program)| (name, run_stats::read(program))));
        self.spent += Duration::from_nanos(length_ns);
        // Both hooks run on a call whose time is taken; only the exit counts its hits.
        self.hits += counted.hits * if kind == calls::Kind::Latency { 2 } else { 1 };
        self.paid_ns += counted.hits * price_ns;
        self.lost += counted.lost;
        self.seen += counted.seen;
        let row = CallWindow {
            id,
            kind: if kind == calls::Kind::Latency { "latency" } else { "results" }.into(),
            t_ns: from_ns.saturating_sub(start_ns),
            length_ns,
            calls: counted.seen,
            lost: counted.lost,
            price_ns,
        };
        self.closed.push((row, counted));
        Ok(())
    }

    /// Runs of the hooks on all processes, and ns of one run. The programs' own time leaves out the
    /// long way through the kernel that every call takes once there is a hook, and what calls of
    /// ours paid leaves out the counting; the higher of the two is nearer to the truth.
    fn runs(&self) -> (u64, f64) {
        let (count, ns) = self.priced.values().fold((0, 0), |sum, r| (sum.0 + r.count, sum.1 + r.ns));
        let per_run = |ns: u64, runs: u64| if runs == 0 { 0.0 } else { ns as f64 / runs as f64 };
        (self.hits, per_run(ns, count).max(per_run(self.paid_ns, self.hits)))
    }
}

impl Collector for Windows<'_> {
    fn prove(&mut self, shared: &Shared<'_>) -> Result<()> {
        if let Some(calls) = self.programs(shared) {
            return calls.open(calls::Kind::Latency).map(drop);
        }
        Err(anyhow!("{}", self.programs.refused().unwrap_or_default()))
    }

    /// Closes the window whose time is up, or opens one.
    fn tick(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        match self.busy_for() {
            Some(left) if left.is_zero() => self.close(shared.start_ns),
            None if self.programs.loaded().is_some() && self.wants_one(shared) => {
                self.next = shared.elapsed() + SPACING;
                self.open()
            }
            _ => Ok(()),
        }
    }

    /// Loads the programs when the first window is called for.
    fn load(&mut self, shared: &Shared<'_>) -> bool {
        let is_due = !self.programs.is_tried() && self.wants_one(shared);
        if is_due {
            self.programs(shared);
        }
        is_due
    }

    /// Every process of the host pays for a window until it is closed.
    fn busy_for(&self) -> Option<Duration> {
        let open = self.open.as_ref()?;
        Some(LENGTH.saturating_sub(Duration::from_nanos(clock::monotonic_ns().saturating_sub(open.from_ns))))
    }

    fn slice(&mut self, _: &mut Shared<'_>, _: &SliceEnd, tables: &mut Tables) -> Result<()> {
        for (window, counted) in take(&mut self.closed) {
            tables.extend([window]);
            tables.extend(counted.calls);
            tables.extend(counted.latencies);
            tables.extend(counted.examples);
        }
        Ok(())
    }

    fn conclude(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        self.close(shared.start_ns).context("failed to close the last window on calls")
    }

    fn losses(&self, _: &Shared<'_>) -> Result<Vec<Kept>> {
        Ok(vec![Kept::of("counted calls", self.seen, self.lost)])
    }

    fn costs(&self, _: &Shared<'_>, _: &Account) -> Result<Vec<Cost>> {
        let (runs, ns) = self.runs();
        Ok(vec![cost_of("syscalls", runs, ns)])
    }

    fn map_bytes(&self, _: &Shared<'_>) -> u64 {
        self.programs.loaded().map_or(0, Calls::map_bytes)
    }

    /// That calls are not counted although they should be.
    fn gaps(&mut self, _: &Shared<'_>) -> Result<Vec<Gap>> {
        Ok(self.programs.refused().map(|why| Gap::refused(KIND.gap, why)).into_iter().collect())
    }

    /// Opens no more windows.
    fn shed(&mut self) -> bool {
        std::mem::replace(&mut self.mode, CallCounting::Never) != CallCounting::Never
    }

    /// The same; a window that is open is closed when its time is up.
    fn stop(&mut self, _: &mut Shared<'_>) -> bool {
        self.shed()
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
