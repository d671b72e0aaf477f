// SPDX-License-Identifier: Apache-2.0
//! One capture: seeds the ledger with the target, drives the collectors until the time is up, and fills the
//! recording. It decides nothing about causes, and knows no collector but the ledger, on which all others build.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::mem::{MaybeUninit, take};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use libbpf_rs::OpenObject;
use recording::tables::{Cost, Gap, Process};
use recording::{Meta, Sink, Slice, Tables};

use crate::collector::{Shared, SliceEnd, Start};
use crate::collectors::{Team, slots, stack_bytes};
use crate::priority::Back;
use crate::probes::ledger::{self, Ledger, ThreadRow, What};
use crate::target::{Openings, processes};
use crate::{clock, courtesy, hooks, host, open_files};

pub use crate::account::{Account, Afterwards};
pub use crate::plan::{CallCounting, Plan, Role, SLICE};

/// How long it takes to load everything on a host with room, and to spare.
const LOADING: Duration = Duration::from_secs(3);
/// How long it stands back behind others meanwhile: with pauses, the 85 ms of CPU time that it takes are over by then.
const LOADING_STANDS_BACK: Duration = Duration::from_millis(500);
/// How often rings are drained: half of what the ring of samples holds at its fastest.
const TICK: Duration = Duration::from_millis(50);
/// Rows, of all tables together, with which a capture ends before its time: to judge as many takes about 2 GB. An hour of a
/// busy service of some threads has 3.6 million; one of thousands of threads would have more than can be read.
const MOST_ROWS: u64 = 6_000_000;

/// How far a capture is.
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Planned.
    pub length: Duration,
    /// What is being done, a few words.
    pub doing: &'static str,
}

/// Captures into `sink`, slice by slice, and seals it. `stop` ends the capture early; what was seen until then is kept. Returns
/// the account of what this process goes on to do.
///
/// # Errors
/// The kernel refuses the ledger, or the recording cannot be written.
pub fn run(
    plan: &Plan,
    sink: &mut dyn Sink,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Afterwards> {
    let cost = Account::start(); // loading is part of the price
    open_files::allow_most();
    let mut back = Back::stand(LOADING);
    let mut slots = slots();
    let loaded = courtesy::during(LOADING_STANDS_BACK, || Loaded::load(plan, &mut slots))?;
    let (host, target) = (host::inventory(&plan.root), plan.target.meta());
    // The clock starts with the watch of the threads: whatever comes between would be time that nobody saw.
    let (started, start_ns) = (clock::rfc3339(SystemTime::now()), clock::monotonic_ns());
    back.forward(|| seed(plan, &loaded.ledger))?;
    let mut meta =
        Meta { tool: plan.tool.clone(), kind: "target".into(), started, start_ns, host, target, ..Meta::default() };
    meta.slo_ns = plan.slo.map_or(0, |slo| u64::try_from(slo.as_nanos()).unwrap_or(u64::MAX));
    meta.target.sample_hz = loaded.sample_hz;
    meta.target.stack_bytes = loaded.stack_bytes;
    sink.describe(&meta)?;
    back.look(TICK);
    let Loaded { ledger, team, gaps, .. } = loaded;
    let shared = Shared::new(plan, ledger, start_ns);
    let mut capture = Capture {
        shared,
        team,
        ended: Vec::new(),
        from_ns: 0,
        cost,
        execed: HashSet::new(),
        came_ns: HashMap::new(),
        openings: Openings::default(),
    };
    sink.put(capture.begin(gaps)?)?;
    meta.ended = capture.watch(sink, stop, progress, &mut back)?;
    capture.team.conclude(&mut capture.shared)?;
    progress(&Progress { elapsed: plan.length, length: plan.length, doing: "naming functions" });
    let end = capture.last_look(&back)?;
    meta.length_ns = end.t_ns;
    let slice = courtesy::in_slices(TICK / 2, || capture.rows(&end))?;
    courtesy::during(courtesy::PATIENCE, || {
        let (slice, afterwards) = capture.close(&end, slice)?;
        sink.put(slice)?;
        sink.seal(&meta)?;
        Ok(afterwards)
    })
}

fn seed(plan: &Plan, ledger: &Ledger<'_>) -> Result<()> {
    let target = &plan.target;
    ledger.seed(&target.pids)?;
    // Processes that were started between the look at /proc and the seeding.
    ledger.seed(&target.now(&plan.root))
}

/// What hangs in the kernel before the clock starts.
struct Loaded<'o> {
    ledger: Ledger<'o>,
    team: Team<'o>,
    /// What is known by now that it will not be seen.
    gaps: Vec<Gap>,
    stack_bytes: u32,
    sample_hz: u32,
}

impl<'o> Loaded<'o> {
    /// Loads the ledger, and beside it what the kernel allows.
    fn load(plan: &Plan, slots: &'o mut [MaybeUninit<OpenObject>]) -> Result<Self> {
        let (began, stack_bytes) = (clock::since_boot(), stack_bytes(plan));
        let mut slots = slots.iter_mut();
        let slot = slots.next().context("no room for the ledger's object")?;
        let ledger = Ledger::load_in(slot, stack_bytes, plan.room);
        let ledger = ledger.map_err(|e| hooks::explain(&plan.root, &ledger::HOOKS, e))?;
        let mut start = Start { plan, ledger: &ledger, began, stack_bytes, sample_hz: 0, bursts: None };
        let (team, mut gaps) = Team::start(&mut start, slots);
        gaps.extend(no_addresses());
        let sample_hz = start.sample_hz;
        Ok(Self { ledger, team, gaps, stack_bytes, sample_hz })
    }
}

/// The state of a running capture.
struct Capture<'o> {
    shared: Shared<'o>,
    team: Team<'o>,
    /// Threads that ended since the last slice.
    ended: Vec<ThreadRow>,
    /// Processes that became another program since then.
    execed: HashSet<u32>,
    /// Begin of the slice in which processes were met that came into the target's cgroup.
    came_ns: HashMap<u32, u64>,
    openings: Openings,
    /// Where the slice that is on began.
    from_ns: u64,
    cost: Account,
}

impl Capture<'_> {
    /// Drains until the end; says why it ended.
    fn watch(
        &mut self,
        sink: &mut dyn Sink,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&Progress),
        back: &mut Back,
    ) -> Result<String> {
        let (length, slice) = (self.shared.plan.length, self.shared.plan.slice);
        let mut next_slice = slice;
        loop {
            sleep(self.team.busy_for().map_or(TICK, |left| left.min(TICK)));
            back.look(TICK);
            let elapsed = self.shared.elapsed();
            // Before the tick, which may take a while: with the first call, a command that waits for the watch goes.
            progress(&Progress { elapsed, length, doing: "watching" });
            let main_ended = self.tick()?;
            self.cost.tick(elapsed, || self.team.programs(&self.shared));
            if stop.load(Ordering::Relaxed) {
                return Ok("interrupted".into());
            }
            if elapsed >= length {
                return Ok("time".into());
            }
            let is_due = elapsed >= next_slice && self.team.busy_for().is_none();
            if is_due || main_ended {
                next_slice = elapsed + slice;
                if !self.slice(sink)? {
                    return Ok("target exited".into());
                }
                if sink.rows() >= MOST_ROWS {
                    return Ok("budget".into());
                }
            }
        }
    }

    /// What is known when the clock starts.
    fn begin(&mut self, gaps: Vec<Gap>) -> Result<Slice> {
        let mut tables = Tables::default();
        let (root, pids) = (&self.shared.plan.root, &self.shared.plan.target.pids);
        self.openings.meet(root, pids.iter().copied());
        let rows = processes(root, pids);
        rows.iter().for_each(|row| self.openings.told(row.pid, &row.listen));
        self.shared.known.begin(rows.iter().map(|p| p.pid));
        tables.extend(rows);
        tables.extend(gaps);
        self.team.begin(&mut self.shared, &mut tables)?;
        Ok(Slice { range: 0..0, tables })
    }

    fn tick(&mut self) -> Result<bool> {
        let events = self.shared.ledger.events()?;
        self.team.tick(&mut self.shared)?;
        Ok(self.heed(events))
    }

    /// Takes note of ends and of new programs, after the samples: then the mappings that those need are gone. True = a
    /// process that was named has ended.
    fn heed(&mut self, events: Vec<ThreadRow>) -> bool {
        let main = &self.shared.plan.target.main;
        let is_main = |row: &ThreadRow| row.tid == row.tgid && main.contains(&row.tgid);
        let main_ended = events.iter().any(|row| row.what == What::Exited && is_main(row));
        for row in events {
            if row.what == What::Execed {
                self.execed.insert(row.tgid);
            }
            if row.what == What::Execed || row.tid == row.tgid {
                self.shared.stacks.forget(row.tgid);
            }
            if row.what == What::Exited {
                self.ended.push(row);
            }
        }
        main_ended
    }

    /// Ends a slice; false = no thread of the target is left, and none can come into its cgroup.
    fn slice(&mut self, sink: &mut dyn Sink) -> Result<bool> {
        let living = self.shared.ledger.read(false)?;
        let t_ns = clock::monotonic_ns() - self.shared.start_ns;
        let end = SliceEnd { t_ns, last: false, living, ended: take(&mut self.ended) };
        self.team.read(&self.shared, &end);
        courtesy::in_slices(TICK / 2, || {
            let mut slice = self.rows(&end)?;
            self.join()?;
            slice.tables.extend(self.gaps(false)?);
            slice.tables.extend(self.costs(t_ns)?);
            sink.put(slice)
        })?;
        Ok(!end.living.is_empty() || self.shared.plan.target.is_awaited())
    }

    /// Watches those who have come into the target's cgroup.
    fn join(&self) -> Result<()> {
        let Shared { plan, known, ledger, .. } = &self.shared;
        let joined = plan.target.joined(&plan.root, |pid| known.has(pid));
        if joined.is_empty() { Ok(()) } else { ledger.seed(&joined) }
    }

    /// What has gathered since the last slice.
    fn rows(&mut self, end: &SliceEnd) -> Result<Slice> {
        let mut tables = Tables::default();
        self.team.slice(&mut self.shared, end, &mut tables)?;
        tables.extend(self.meet(end)); // who has ended in it is of the target until here
        Ok(Slice { range: std::mem::replace(&mut self.from_ns, end.t_ns)..end.t_ns, tables })
    }

    /// Processes that are still there and were born since the last slice, or became another program, or began to listen.
    fn meet(&mut self, end: &SliceEnd) -> Vec<Process> {
        let Shared { plan, start_ns, known, .. } = &mut self.shared;
        let from_ns = self.from_ns;
        let mut pids: BTreeSet<u32> = known.meet(end).iter().map(|t| t.tgid).collect();
        self.openings.meet(&plan.root, pids.iter().copied());
        pids.extend(take(&mut self.execed).into_iter().filter(|pid| known.has(*pid)));
        pids.extend(self.openings.since(&plan.root, &known.pids()));
        if pids.is_empty() {
            return Vec::new();
        }
        let mut rows = processes(&plan.root, &pids.into_iter().collect::<Vec<_>>());
        for row in &mut rows {
            let born = end.living.iter().find(|t| (t.tgid, t.tid) == (row.pid, row.pid)).map_or(0, |t| t.born_ns);
            row.started_ns = born.saturating_sub(*start_ns);
            // The birth of one that came into the target's cgroup was not seen.
            if born == 0 && from_ns > 0 && !plan.target.pids.contains(&row.pid) {
                row.started_ns = *self.came_ns.entry(row.pid).or_insert(from_ns);
            }
            self.openings.told(row.pid, &row.listen);
        }
        self.team.come(&rows);
        rows
    }

    /// Takes the hooks off. The capture ends with this look at the threads, and so must all that is counted; what was
    /// caught until then is read afterwards.
    fn last_look(&mut self, back: &Back) -> Result<SliceEnd> {
        let (last_look, t_ns) = back.forward(|| {
            let last_look = self.shared.ledger.read(true);
            // Not after the hooks are off: that takes a tenth of a second and more where the host is full, in which the
            // threads' time is not counted.
            let t_ns = clock::monotonic_ns() - self.shared.start_ns;
            self.team.detach(&mut self.shared);
            (last_look, t_ns)
        });
        let living = last_look.context("failed to close the last slice")?;
        let mut end = SliceEnd { t_ns, last: true, living, ended: Vec::new() };
        self.team.read(&self.shared, &end);
        let events = self.shared.ledger.events()?;
        self.team.drain(&mut self.shared)?;
        self.heed(events);
        // Some may have ended between the look and the end of the hooks: their last word counts.
        end.ended = take(&mut self.ended);
        let ended: HashSet<u32> = end.ended.iter().map(|row| row.tid).collect();
        end.living.retain(|row| !ended.contains(&row.tid));
        Ok(end)
    }

    /// What could not be seen and was not told yet; how much of what was looked at in part only the end tells.
    fn gaps(&mut self, is_end: bool) -> Result<Vec<Gap>> {
        let mut gaps = self.team.gaps(&mut self.shared, is_end)?;
        gaps.extend(self.cost.gap());
        Ok(gaps)
    }

    /// What was spent since the last call.
    fn costs(&mut self, t_ns: u64) -> Result<Vec<Cost>> {
        let spent = self.team.spent(&mut self.shared, &mut self.cost, t_ns)?;
        let mut rows: Vec<Cost> = spent.into_iter().flat_map(|spent| spent.programs).collect();
        let own = self.cost.process(self.team.map_bytes(&self.shared));
        rows.extend(self.cost.fresh(t_ns, own));
        Ok(rows)
    }

    /// The last slice, with what only the end can tell: the last names of functions, and how much of what was looked at in part
    /// was not seen.
    fn close(mut self, end: &SliceEnd, mut slice: Slice) -> Result<(Slice, Afterwards)> {
        self.team.finish(&mut self.shared, end, &mut slice.tables)?;
        slice.tables.extend(self.gaps(true)?);
        slice.tables.extend(self.costs(end.t_ns)?);
        Ok((slice, Afterwards::start()))
    }
}

/// That interrupts are not told from those whom they interrupt, where this user is not shown the kernel's addresses.
fn no_addresses() -> Option<Gap> {
    let why = "who was interrupted may be shown as who woke somebody: /proc/kallsyms shows this user no addresses (needs \
               CAP_SYSLOG, and kernel.kptr_restrict at 1 or lower)";
    (!host::shows_kernel_symbols()).then(|| Gap::refused("kernel symbols", why))
}
