// SPDX-License-Identifier: Apache-2.0
//! One capture: seeds the probes with the target, drains them until the time is up, and fills the
//! recording. It decides nothing about causes; the only judgement here is whether the samples look
//! as if counting system calls were worth its price (`windows`).

mod closing;
mod connections;
mod cost;
mod due;
mod exchanges;
mod hung;
mod kernel_stacks;
mod lazy;
mod losses;
mod naming;
mod neighbours;
mod pace;
pub(crate) mod samples;
mod speed;
pub(crate) mod threads;
mod waits;
mod wakeups;
mod windows;

use std::collections::HashSet;
use std::mem::{MaybeUninit, replace, take};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use recording::tables::{CallExample, CallLatency, Counter, Gap, Setting};
use recording::{Meta, Writer};

use crate::clock;
use crate::courtesy;
use crate::host;
use crate::inventory;
use crate::priority::Back;
use crate::probes::Room;
use crate::probes::ledger::{Ledger, ThreadRow, What};
use crate::probes::profile::{Moment, Profile};
use crate::samplers::{Samplers, Scope};
use crate::target::{Resolved, processes};
use due::Due;
use hung::Probes;

pub use cost::Afterwards;
pub use windows::CallCounting;

/// How long it takes to load everything on a host with room, and to spare.
const LOADING: Duration = Duration::from_secs(3);
/// How often rings are drained: half of what the ring of samples holds at its fastest.
const TICK: Duration = Duration::from_millis(50);
/// Length of a slice of the thread ledger and of the counters.
const SLICE: Duration = Duration::from_secs(1);
/// Samples a second and CPU. Not a divisor of common timers, so that it does not march in step.
const SAMPLE_HZ: u32 = 197;

/// What to capture.
pub struct Plan {
    /// The service.
    pub target: Resolved,
    /// How long.
    pub length: Duration,
    /// When to count system calls.
    pub calls: CallCounting,
    /// `/`, but for tests.
    pub root: PathBuf,
    /// Name and version of the program, for the recording.
    pub tool: String,
    /// Room in the kernel's tables: all that they were made for, but in tests of what happens when they are full.
    pub room: Room,
}

/// How far a capture is.
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Planned.
    pub length: Duration,
    /// What is being done, a few words.
    pub doing: &'static str,
}

/// Captures into `writer` and seals it. `stop` ends the capture early; what was seen until then is kept. Returns the account
/// of what this process goes on to do.
///
/// # Errors
/// The kernel refuses the ledger, or the recording cannot be written.
pub fn run(
    plan: &Plan,
    mut writer: Writer,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Afterwards> {
    let cost = cost::Account::start(); // loading is part of the price
    let mut back = Back::stand(LOADING);
    let (mut a, mut b, mut c, mut d) =
        (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
    let (mut e, mut f, mut g) = (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
    let mut gaps = Vec::new();
    // Before our own programs are among the loaded ones.
    let settings = courtesy::in_slices(courtesy::PATIENCE, || inventory::host(&plan.root));
    let stack_bytes = samples::stack_bytes(plan);
    let room = [&mut a, &mut b, &mut d, &mut g];
    let probes = courtesy::during(courtesy::PATIENCE, || Probes::load(plan, stack_bytes, room, &mut gaps))?;
    let (host, target) = (host::inventory(&plan.root), plan.target.meta());
    // The clock starts with the watch of the threads: whatever comes between would be time that nobody saw.
    let (started, start_ns) = (clock::rfc3339(SystemTime::now()), clock::monotonic_ns());
    back.forward(|| seed(plan, &probes.ledger))?;
    let mut meta =
        Meta { tool: plan.tool.clone(), kind: "target".into(), started, start_ns, host, target, ..Meta::default() };
    meta.target.sample_hz = if probes.profile.is_some() { SAMPLE_HZ } else { 0 };
    meta.target.stack_bytes = stack_bytes;
    writer.describe(&meta)?;
    writer.append(&settings)?;
    back.look(TICK);
    let windows = windows::Windows::new(&mut c, plan.calls, plan.length, start_ns);
    let looks = connections::Looks::new(&mut e, plan.target.ports.iter().copied());
    let naming = naming::Naming::new(&mut f);
    let mut capture = Capture::new(plan, start_ns, probes, (windows, looks, naming), gaps, cost);
    meta.ended = capture.watch(&mut writer, stop, progress, &mut back)?;
    capture.windows.close(&mut writer)?;
    progress(&Progress { elapsed: plan.length, length: plan.length, doing: "naming functions" });
    let end = capture.last_look(&back)?;
    meta.length_ns = end.t_ns;
    courtesy::during(courtesy::PATIENCE, || {
        let afterwards = capture.close(&mut writer, &end)?;
        writer.seal(&meta)?;
        Ok(afterwards)
    })
}

fn seed(plan: &Plan, ledger: &Ledger<'_>) -> Result<()> {
    let pids = &plan.target.pids;
    ledger.seed(pids)?;
    // Children that were forked between the look at /proc and the seeding.
    ledger.seed(&crate::target::descendants(&plan.root, pids))
}

/// The state of a running capture.
struct Capture<'o, 'p> {
    plan: &'p Plan,
    start_ns: u64,
    probes: Probes<'o>,
    windows: windows::Windows<'o>,
    looks: connections::Looks<'o>,
    naming: naming::Naming<'o>,
    exchanges: exchanges::Turns,
    samplers: Samplers,
    slices: threads::Slices,
    samples: samples::Samples,
    wakeups: wakeups::Rows,
    ended: Vec<ThreadRow>,
    known: HashSet<u32>,
    inventoried: bool,
    speed: speed::Speed,
    kernel_stacks: kernel_stacks::KernelStacks,
    neighbours: neighbours::Neighbours,
    losses: losses::Losses,
    cost: cost::Account,
    gaps: Vec<Gap>,
    due: Due,
    pace: pace::Pace,
}

impl<'o, 'p> Capture<'o, 'p> {
    fn new(
        plan: &'p Plan,
        start_ns: u64,
        probes: Probes<'o>,
        (windows, looks, naming): (windows::Windows<'o>, connections::Looks<'o>, naming::Naming<'o>),
        gaps: Vec<Gap>,
        cost: cost::Account,
    ) -> Self {
        let pace = pace::Pace::new(probes.profile.iter().flat_map(Profile::cpus));
        Self {
            plan,
            start_ns,
            probes,
            windows,
            looks,
            naming,
            exchanges: exchanges::Turns::new(),
            samplers: Samplers::new(Scope::of(&plan.root, &plan.target)),
            slices: threads::Slices::new(start_ns),
            samples: samples::Samples::new(start_ns),
            wakeups: wakeups::Rows::new(&plan.root, start_ns),
            ended: Vec::new(),
            known: HashSet::new(),
            inventoried: false,
            speed: speed::Speed::new(),
            kernel_stacks: kernel_stacks::KernelStacks::default(),
            neighbours: neighbours::Neighbours::new(&plan.root, &plan.target.limits.allowed_cpus),
            losses: losses::Losses::default(),
            cost,
            gaps,
            due: Due::default(),
            pace,
        }
    }

    /// Drains until the end; says why it ended.
    fn watch(
        &mut self,
        writer: &mut Writer,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&Progress),
        back: &mut Back,
    ) -> Result<String> {
        self.open_tables(writer)?;
        let mut next_slice = SLICE;
        loop {
            sleep(self.windows.closes_in().map_or(TICK, |left| left.min(TICK)));
            back.look(TICK);
            let threads = self.probes.ledger.threads();
            self.windows.tick(threads, &self.plan.root, writer, &self.samples.suspicion)?;
            let elapsed = Duration::from_nanos(clock::monotonic_ns() - self.start_ns);
            progress(&Progress { elapsed, length: self.plan.length, doing: "watching" });
            let main_ended = self.drain()?;
            self.speed.probe();
            self.looks.maybe_look(&self.probes.ledger, self.known.iter().copied());
            self.cost.tick(elapsed, || self.probes.programs());
            if stop.load(Ordering::Relaxed) {
                return Ok("interrupted".into());
            }
            if elapsed >= self.plan.length {
                return Ok("time".into());
            }
            // Not within a window, which every process of the host pays for until it is closed.
            let is_due = elapsed >= next_slice && self.windows.closes_in().is_none();
            if is_due || main_ended {
                next_slice = elapsed + SLICE;
                if !self.slice(writer)? {
                    return Ok("target exited".into());
                }
            }
        }
    }

    /// Makes the tables that a verdict can do nothing without, so that a reader can tell a table
    /// without rows from one that was never tried.
    fn open_tables(&mut self, writer: &mut Writer) -> Result<()> {
        writer.append::<CallExample>(&[])?;
        writer.append::<CallLatency>(&[])?;
        let rows = processes(&self.plan.root, &self.plan.target.pids);
        self.known.extend(rows.iter().map(|p| p.pid));
        writer.append(&rows)?;
        writer.append(&self.samplers.sample(0))
    }

    /// Samples first: after an exec or an end the mappings that they need are gone. True = a process that
    /// was named has ended.
    fn drain(&mut self) -> Result<bool> {
        let events = self.probes.ledger.events()?;
        if let Some(profile) = &mut self.probes.profile {
            let (waits, samples): (Vec<_>, Vec<_>) =
                profile.samples()?.into_iter().partition(|raw| raw.moment != Moment::AtClock);
            let now = Duration::from_nanos(clock::monotonic_ns() - self.start_ns);
            samples.iter().for_each(|raw| self.pace.see(raw.cpu, now));
            self.pace.changes(now).into_iter().for_each(|(cpu, weight)| profile.set_pace(cpu, weight));
            self.due.samples.extend(self.samples.take(samples));
            self.due.waits.extend(self.samples.waits(waits));
        }
        if let Some(wakeups) = &self.probes.wakeups {
            let stacks = (&mut self.kernel_stacks, &mut self.samples.stacks);
            let rows = self.wakeups.take(&wakeups.rows()?, &self.probes.ledger, stacks)?;
            self.due.wakeups.extend(rows);
        }
        let is_main = |row: &ThreadRow| row.tid == row.tgid && self.plan.target.main.contains(&row.tgid);
        let main_ended = events.iter().any(|row| row.what == What::Exited && is_main(row));
        for row in events {
            if row.what == What::Execed || row.tid == row.tgid {
                self.samples.stacks.forget(row.tgid);
            }
            if row.what == What::Exited {
                self.ended.push(row);
            }
        }
        Ok(main_ended)
    }

    /// Writes one slice; false = no thread of the target is left.
    fn slice(&mut self, writer: &mut Writer) -> Result<bool> {
        let living = self.probes.ledger.read(false)?;
        let t_ns = clock::monotonic_ns() - self.start_ns;
        let counters = self.samplers.sample(t_ns);
        courtesy::in_slices(TICK / 2, || self.write_slice(writer, t_ns, &living, &counters))?;
        Ok(!living.is_empty())
    }

    fn write_slice(
        &mut self,
        writer: &mut Writer,
        t_ns: u64,
        living: &[ThreadRow],
        counters: &[Counter],
    ) -> Result<()> {
        self.due.write(writer)?;
        let ended = take(&mut self.ended);
        writer.append(&self.slices.rows(t_ns, living, &ended))?;
        writer.append(counters)?;
        writer.append(&self.speed.rows(t_ns))?;
        writer.append(&self.looks.rows(t_ns))?;
        if let Some(probe) = &mut self.probes.exchanges {
            let (rows, windows) = self.exchanges.rows(t_ns, probe)?;
            writer.append(&rows)?;
            writer.append(&windows)?;
        }
        let stacks = &mut self.samples.stacks;
        writer.append(&waits::rows(t_ns, &self.probes.ledger, &mut self.kernel_stacks, stacks)?)?;
        // It asks for locks of the cgroups.
        writer.append(&courtesy::urgently(|| self.neighbours.rows(t_ns, &self.probes, &self.known))?)?;
        self.naming.slice(&mut self.samples.stacks, writer)?;
        writer.append(&self.losses.rows(t_ns, &self.probes, &self.windows)?)?;
        self.meet(writer, living)?;
        self.take_inventory(writer)?;
        Ok(())
    }

    /// Notes how the target is set up, once and not at the start: a command that was started for the purpose
    /// has become itself by now.
    fn take_inventory(&mut self, writer: &mut Writer) -> Result<()> {
        if replace(&mut self.inventoried, true) {
            return Ok(());
        }
        let (root, pids) = (&self.plan.root, &self.plan.target.pids);
        let mut rows: Vec<Setting> = inventory::processes(root, pids);
        rows.extend(pids.first().map(|main| inventory::sysctls(root, *main)).unwrap_or_default());
        writer.append(&rows)
    }

    /// Notes processes that were born since the last slice and are still there.
    fn meet(&mut self, writer: &mut Writer, living: &[ThreadRow]) -> Result<()> {
        let fresh: Vec<&ThreadRow> = living.iter().filter(|t| t.tid == t.tgid && self.known.insert(t.tgid)).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let pids: Vec<u32> = fresh.iter().map(|t| t.tgid).collect();
        let mut rows = processes(&self.plan.root, &pids);
        for row in &mut rows {
            let born = fresh.iter().find(|t| t.tgid == row.pid).map_or(0, |t| t.born_ns);
            row.started_ns = born.saturating_sub(self.start_ns);
        }
        self.looks.listen(rows.iter().flat_map(|row| &row.listen));
        self.probes.listen(rows.iter().flat_map(|row| &row.listen));
        writer.append(&rows)
    }

    /// Takes the hooks off. The capture ends with this look at the threads, and so must all that is counted; what was
    /// caught until then is read afterwards.
    fn last_look(&mut self, back: &Back) -> Result<End> {
        let (last_look, length_ns) = back.forward(|| {
            let last_look = self.probes.ledger.read(true);
            // Not after the hooks are off: that takes a tenth of a second and more where the host is full, in which the
            // threads' time is not counted.
            let length_ns = clock::monotonic_ns() - self.start_ns;
            self.probes.detach();
            (last_look, length_ns)
        });
        let mut living = last_look.context("failed to close the last slice")?;
        let counters = self.samplers.last(length_ns);
        self.drain()?;
        self.due.end(length_ns);
        // Some may have ended between the look and the end of the hooks: their last word counts.
        let ended: HashSet<u32> = self.ended.iter().map(|row| row.tid).collect();
        living.retain(|row| !ended.contains(&row.tid));
        Ok(End { t_ns: length_ns, living, counters })
    }

    /// Writes the last slice and what only the end can tell.
    fn close(mut self, writer: &mut Writer, end: &End) -> Result<Afterwards> {
        self.write_slice(writer, end.t_ns, &end.living, &end.counters)?;
        closing::write(self, writer, end.t_ns)
    }
}

/// What the last look saw.
struct End {
    t_ns: u64,
    living: Vec<ThreadRow>,
    counters: Vec<Counter>,
}
