// SPDX-License-Identifier: Apache-2.0
//! Wakeups, the user side: hands out who ended the waits of the target and of those who did.

use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use libbpf_rs::skel::{OpenSkel as _, Skel};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, OpenObject, ProgramMut, RingBuffer, RingBufferBuilder};
use plain::Plain;
use recording::tables::Gap;

use super::ledger::Ledger;
use super::{Kept, Probe, Room, kernel_map, kernel_types, mark_listening, refusal, run_stats, shapes, user_stack};
use crate::{courtesy, host};

mod skel {
    #![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]
    include!(concat!(env!("OUT_DIR"), "/wakeups.skel.rs"));
}
use skel::types;

mod rows;
pub(crate) use rows::parse;
use rows::parse_birth;
pub use rows::{Birth, Party, Ports, Wakeup};

/// Tracepoints that it hangs on.
pub const HOOKS: [&str; 3] = ["sched_waking", "task_newtask", "sched_process_exit"];

/// So long a chain of wakers is followed after it led to the target: longer than most captures, so that a walk misses nothing; and
/// whoever ended a wait of the target by chance is left alone again.
const FOLLOWED_FOR: Duration = Duration::from_secs(60);

/// Rows in a turn of an eighth of a second on all CPUs together, about 2,000 a second: enough for a walk, and a bound on
/// what a recording grows by.
const ROWS_PER_TURN: u32 = 256;
/// Likewise snapshots, of which each costs as much as many rows.
const SNAPSHOTS_PER_TURN: u32 = 32;
/// Likewise of wakers outside the target.
const SHOWN_PER_TURN: u32 = 8;

/// Events of a burst: some 2 ms of CPU time in the target's threads, and as much of this process.
const EVENTS_OF_BURST: i64 = 2_000;
/// There may be so many times less of rows and of events.
const MOST_SHED: u8 = 4;

/// Times the CPUs that the target may use: as many others may wake it.
const AND_OTHERS: usize = 4;

/// On how many CPUs a turn is spread: where the target may use a few of many, most wakeups are on those.
fn turns(online: usize, allowed: usize) -> u32 {
    let most = if allowed == 0 { online } else { online.min(allowed * AND_OTHERS) };
    u32::try_from(most).unwrap_or(1).max(1)
}

/// What the probe counted about itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Wakeups seen, bystanders' too.
    pub hits: u64,
    /// Waits of threads that are looked at.
    pub waits: u64,
    /// Rows written.
    pub rows: u64,
    /// Rows that found the ring full.
    pub rows_lost: u64,
    /// Threads that were started in bursts.
    pub births: u64,
    /// Those that found the ring full.
    pub births_lost: u64,
    /// Rows whose time was left to a later row.
    pub put_off: u64,
    /// Stacks taken.
    pub stacks: u64,
    /// Stacks that found the map full.
    pub stacks_lost: u64,
    /// Snapshots of wakers taken.
    pub snapshots: u64,
    /// Snapshots that found the ring full.
    pub snapshots_lost: u64,
    /// Threads outside the target that are followed.
    pub followed: u64,
    /// Times that a waker could not be followed.
    pub not_followed: u64,
}

// SAFETY: integers only, and no padding that is read: any bytes are valid. Generated from the C source, as all types of maps
// and rings are.
unsafe impl Plain for types::wakeup {}
// SAFETY: as above.
unsafe impl Plain for types::birth {}
// SAFETY: as above.
unsafe impl Plain for types::burst {}
// SAFETY: as above.
unsafe impl Plain for types::wakeup_counts {}

/// Bursts of full detail, in which every wait gets a row; the probe of exchanges knows by the same map whether one is on.
pub struct Bursts {
    pub(super) map: MapHandle,
    /// How many times less than at first there is to be of rows and events.
    shed: Rc<Cell<u8>>,
}

impl Bursts {
    /// How many events a burst is to have from now on.
    pub fn events(&self) -> i64 {
        EVENTS_OF_BURST / i64::from(self.shed.get())
    }

    /// Begins a burst of so many events; 0 = ends it.
    ///
    /// # Errors
    /// The map cannot be written.
    pub fn begin(&self, events: i64) -> Result<()> {
        let mut bytes = [0; size_of::<types::burst>()];
        bytes[..size_of::<i64>()].copy_from_slice(&events.to_ne_bytes());
        self.map.update(&0u32.to_ne_bytes(), &bytes, MapFlags::ANY).context("failed to begin a burst")
    }

    /// When the events of the last burst were used up, CLOCK_MONOTONIC ns; none = it goes on.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn ended_ns(&self) -> Result<Option<u64>> {
        let bytes = self.map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).context("failed to read a burst")?;
        let burst: Option<types::burst> = bytes.and_then(|bytes| kernel_map::row(&bytes));
        Ok(burst.map(|burst| burst.ended_at).filter(|at| *at > 0))
    }
}

/// The loaded and attached probe.
pub struct Wakeups<'o> {
    skel: skel::WakeupsSkel<'o>,
    ring: RingBuffer<'o>,
    fresh: Rc<RefCell<Vec<Wakeup>>>,
    born: Rc<RefCell<Vec<Birth>>>,
    links: Vec<Link>,
    rows_per_turn: u32,
    shed: Rc<Cell<u8>>,
}

impl<'o> Wakeups<'o> {
    /// Loads the program beside a ledger, whose threads it looks at, and attaches it.
    ///
    /// # Errors
    /// The kernel refuses the program: the sentence says why.
    pub fn load(storage: &'o mut MaybeUninit<OpenObject>, ledger: &Ledger<'_>) -> Result<Self> {
        Self::load_in(storage, ledger, Some(16 << 10), Room::Whole, &[])
    }

    /// The same with other room in its maps; `stack_bytes` of a user stack are kept in a snapshot, none = nobody reads
    /// snapshots. Empty CPUs = the target may use all.
    ///
    /// # Errors
    /// As above.
    pub fn load_in(
        storage: &'o mut MaybeUninit<OpenObject>,
        ledger: &Ledger<'_>,
        stack_bytes: Option<u32>,
        room: Room,
        allowed_cpus: &[u32],
    ) -> Result<Self> {
        let mut open = refusal::open(skel::WakeupsSkelBuilder::default(), storage, "the program of wakeups")?;
        room.apply(open.open_object_mut())?;
        open.maps.threads.reuse_fd(ledger.threads().as_fd()).context("failed to share the map of threads")?;
        open.maps.stacks.reuse_fd(ledger.stack_map().as_fd()).context("failed to share the map of stacks")?;
        open.maps.samples.reuse_fd(ledger.ring().as_fd()).context("failed to share the ring of samples")?;
        let cpus = turns(host::online_cpus(Path::new("/")).len(), allowed_cpus.len());
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.task_type = kernel_types::task();
            shapes::mark_subjects(&mut rodata.subjects);
            shapes::mark_asking(&mut rodata.asks);
            let each = |all: u32| stack_bytes.map_or(0, |_| (all / cpus).max(1));
            (rodata.snapshots_per_turn, rodata.shown_per_turn) = (each(SNAPSHOTS_PER_TURN), each(SHOWN_PER_TURN));
            rodata.most_followed = room.of(rodata.most_followed);
            rodata.stack_chunks = user_stack::chunks(stack_bytes.unwrap_or(0));
            (rodata.interrupts_from, rodata.interrupts_until) = host::interrupt_entries(Path::new("/"));
        }
        let rows_per_turn = (ROWS_PER_TURN / cpus).max(1);
        if let Some(bss) = open.maps.bss_data.as_deref_mut() {
            bss.rows_per_turn = rows_per_turn;
            bss.follow_ns = FOLLOWED_FOR.as_nanos() as u64;
        }
        let skel = refusal::load(open, "the kernel refused the program of wakeups")?;
        let (fresh, born) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(Vec::new())));
        let mut rings = RingBufferBuilder::new();
        into(&mut rings, &skel.maps.wakeups, &fresh, parse)?;
        into(&mut rings, &skel.maps.births, &born, parse_birth)?;
        let ring = rings.build().context("failed to map the rings of wakeups")?;
        let progs = &skel.progs;
        let programs = HOOKS.into_iter().zip([&progs.on_waking, &progs.on_fork, &progs.on_exit]);
        let attach = |(hook, program): (_, &ProgramMut<'_>)| {
            program.attach().with_context(|| format!("failed to attach to {hook}"))
        };
        let links = courtesy::urgently(|| programs.map(attach).collect::<Result<_>>())?;
        Ok(Self { skel, ring, fresh, born, links, rows_per_turn, shed: Rc::new(Cell::new(1)) })
    }

    /// Follows a chain of wakers for so long after it led to the target, and no longer.
    pub fn follow_for(&mut self, time: Duration) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            bss.follow_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        }
    }

    /// Says at which sockets clients ask the target, such as `tcp 0.0.0.0:80`: they are not followed.
    pub fn listen<'s>(&mut self, sockets: impl IntoIterator<Item = &'s String>) {
        let Some(bss) = self.skel.maps.bss_data.as_deref_mut() else { return };
        let port = |socket: &String| socket.rsplit(':').next()?.split_whitespace().next()?.parse::<u16>().ok();
        mark_listening(&mut bss.listening, sockets.into_iter().filter_map(port));
    }

    /// Wakeups and births since the last call.
    ///
    /// # Errors
    /// A ring fails.
    pub fn rows(&self) -> Result<(Vec<Wakeup>, Vec<Birth>)> {
        self.ring.consume().context("failed to read the rings of wakeups")?;
        Ok((self.fresh.take(), self.born.take()))
    }

    /// The bursts, for who is to begin them.
    ///
    /// # Errors
    /// The map's descriptor cannot be duplicated.
    pub fn bursts(&self) -> Result<Bursts> {
        let map = MapHandle::try_from(&self.skel.maps.bursts).context("failed to share the map of bursts")?;
        Ok(Bursts { map, shed: Rc::clone(&self.shed) })
    }

    /// Halves the rows, and the events of bursts; false = there are as few as may be.
    pub fn shed(&mut self) -> bool {
        let Some(bss) = self.skel.maps.bss_data.as_deref_mut() else { return false };
        let shed = (self.shed.get() * 2).min(MOST_SHED);
        bss.rows_per_turn = (self.rows_per_turn / u32::from(shed)).max(1);
        self.shed.replace(shed) < shed
    }

    /// What was counted and lost.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counts(&self) -> Result<Counts> {
        let mut sum = Counts::default();
        for c in kernel_map::per_cpu::<types::wakeup_counts>(&self.skel.maps.wakeup_counts)? {
            sum.hits += c.hits;
            sum.waits += c.waits;
            sum.rows += c.rows;
            sum.rows_lost += c.rows_lost;
            sum.births += c.births;
            sum.births_lost += c.births_lost;
            sum.put_off += c.put_off;
            sum.stacks += c.stacks;
            sum.stacks_lost += c.stacks_lost;
            sum.snapshots += c.snapshots;
            sum.snapshots_lost += c.snapshots_lost;
            sum.followed += c.followed;
            sum.not_followed += c.not_followed;
        }
        Ok(sum)
    }
}

impl Probe for Wakeups<'_> {
    /// Births and ends are few beside wakeups.
    fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        vec![("sched_waking", self.skel.progs.on_waking.as_fd())]
    }

    fn runs(&self) -> Result<Vec<(&'static str, u64)>> {
        Ok(vec![("sched_waking", self.counts()?.hits)])
    }

    fn losses(&self) -> Result<Vec<Kept>> {
        let c = self.counts()?;
        Ok(vec![
            Kept { what: "wakeups", kept: c.rows, lost: c.rows_lost },
            Kept { what: "starts of threads", kept: c.births, lost: c.births_lost },
            Kept { what: "stacks of programs that wake others", kept: c.snapshots, lost: c.snapshots_lost },
            Kept::of("stacks of wakeups", c.stacks, c.stacks_lost),
        ])
    }

    /// That wakers were left alone because there were too many of them.
    fn gaps(&self) -> Result<Vec<Gap>> {
        let c = self.counts()?;
        let why = format!(
            "{} wakeups came from processes that could not be followed, beside {} that were: chains end there",
            c.not_followed, c.followed
        );
        let part = c.not_followed as f64 / (c.not_followed + c.followed).max(1) as f64;
        let gap = (c.not_followed > 0).then(|| Gap::partial("walk", part, why));
        Ok(gap.into_iter().collect())
    }

    fn map_bytes(&self) -> u64 {
        run_stats::map_bytes(self.skel.object(), &["threads", "stacks", "samples"])
    }

    fn detach(&mut self) {
        self.links.clear();
    }
}

/// Puts the records of a ring into a list.
fn into<'m, 'o: 'm, T: 'o>(
    rings: &mut RingBufferBuilder<'m, 'o>,
    ring: &'m dyn MapCore,
    list: &Rc<RefCell<Vec<T>>>,
    parse: fn(&[u8]) -> Option<T>,
) -> Result<()> {
    let sink = Rc::clone(list);
    rings.add(ring, move |bytes| {
        sink.borrow_mut().extend(parse(bytes));
        0
    })?;
    Ok(())
}
