// SPDX-License-Identifier: Apache-2.0
//! The thread ledger's user side: seeds the watch, reads the rows, drains waits and exits.

use std::cell::RefCell;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result};
use libbpf_rs::skel::{OpenSkel as _, Skel};
use libbpf_rs::{
    Iter, Link, MapCore, MapFlags, OpenMapMut, OpenObject, ProgramMut, RingBuffer, RingBufferBuilder, libbpf_sys,
};
use plain::Plain;
use recording::tables::Gap;

use super::{
    Kept, Probe, Room, comm_of_chars, kernel_map, kernel_types, read_all, refusal, run_stats, shapes, user_stack,
};
use crate::courtesy;
use crate::host::online_cpus;

mod counts;

pub use counts::Counts;

mod skel {
    #![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]
    include!(concat!(env!("OUT_DIR"), "/ledger.skel.rs"));
}
use skel::types;

/// Tracepoints that it hangs on.
pub const HOOKS: [&str; 3] = ["sched_switch", "task_newtask", "sched_process_exec"];

/// What a row is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum What {
    /// The thread is there.
    #[default]
    Living,
    /// It has ended.
    Exited,
    /// Its process runs another program now.
    Execed,
}

/// One thread as it stands: sums since its watch began.
#[derive(Clone, Debug, Default)]
pub struct ThreadRow {
    /// Process id.
    pub tgid: u32,
    /// Thread id.
    pub tid: u32,
    /// Parent process.
    pub ppid: u32,
    /// What the row is about.
    pub what: What,
    /// The signal that ended it; 0 = none.
    pub signal: u32,
    /// When the row was made, CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// When the thread was forked within the capture, ns; 0 = before.
    pub born_ns: u64,
    /// Command name.
    pub comm: String,
    /// Ledger lines, ns, and switch counts.
    pub sum: Totals,
}

/// Sums of a thread, ns unless said; the C struct `totals`.
pub type Totals = types::totals;

/// Blocked time by thread, call, file and kernel stack.
#[derive(Clone, Debug)]
pub struct WaitRow {
    /// Process id; 0 = young threads together.
    pub tgid: u32,
    /// Thread id; 0 = young threads together.
    pub tid: u32,
    /// System call; -1 = none.
    pub syscall: i32,
    /// Kind of the first argument's descriptor.
    pub fd_kind: &'static str,
    /// Magic number of the file system that the file is on; 0 = none.
    pub file_system: u32,
    /// Task state bits.
    pub state: u8,
    /// Counted by the kernel as I/O wait.
    pub io_wait: bool,
    /// Key in [`Ledger::stacks`]; 0 = none.
    pub stack: u64,
    /// Number of waits.
    pub count: u64,
    /// ns.
    pub total_ns: u64,
    /// ns.
    pub max_ns: u64,
}

// SAFETY: integers only, without padding that matters: any bytes are valid. Generated from the C source, as all types of maps
// and rings are.
unsafe impl Plain for types::thread_row {}
// SAFETY: as above.
unsafe impl Plain for types::kernel_stack {}
// SAFETY: as above.
unsafe impl Plain for types::wait_key {}
// SAFETY: as above.
unsafe impl Plain for types::wait_value {}
// SAFETY: as above.
unsafe impl Plain for types::counts {}
// SAFETY: as above.
unsafe impl Plain for types::delayed {}

/// The loaded and attached ledger.
pub struct Ledger<'o> {
    skel: skel::LedgerSkel<'o>,
    exits: RingBuffer<'o>,
    events: Rc<RefCell<Vec<ThreadRow>>>,
    links: Vec<Link>,
}

/// The ring of samples, bytes. The clocks of all CPUs fill it from the moment when programs are loaded, and each sample has a user stack
/// with it; where the target has the whole of a large machine, a tenth of a second of them must have room.
fn samples_bytes(cpus: usize) -> u32 {
    const OF_SIXTEEN: u32 = 8 << 20;
    const MOST: usize = 8;
    OF_SIXTEEN * cpus.div_ceil(16).next_power_of_two().min(MOST) as u32
}

impl<'o> Ledger<'o> {
    /// Loads the programs and attaches the hooks; nobody is watched yet.
    ///
    /// # Errors
    /// The kernel refuses a program: the sentence says which.
    pub fn load(storage: &'o mut MaybeUninit<OpenObject>) -> Result<Self> {
        Self::load_in(storage, 16 << 10, Room::Whole)
    }

    /// The same with other room in its maps, and so many bytes of user stack in snapshots of threads that wait.
    ///
    /// # Errors
    /// As above.
    pub fn load_in(storage: &'o mut MaybeUninit<OpenObject>, stack_bytes: u32, room: Room) -> Result<Self> {
        let mut open = refusal::open(skel::LedgerSkelBuilder::default(), storage, "the ledger's programs")?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.task_type = kernel_types::task();
            shapes::mark_subjects(&mut rodata.subjects);
            rodata.stack_chunks = user_stack::chunks(stack_bytes);
        }
        if !kernel_types::makes_entries_anywhere() {
            make_entries_at_once([&mut open.maps.waits, &mut open.maps.delayers])?;
        }
        open.maps.samples.set_max_entries(samples_bytes(online_cpus(Path::new("/")).len()))?;
        room.apply(open.open_object_mut())?;
        let skel = refusal::load(open, "the kernel refused the ledger's programs")?;
        let events = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&events);
        let mut rings = RingBufferBuilder::new();
        rings.add(&skel.maps.exits, move |bytes| {
            sink.borrow_mut().extend(kernel_map::row(bytes).map(thread_row));
            0
        })?;
        let exits = rings.build().context("failed to map the ring of thread ends")?;
        let progs = &skel.progs;
        let programs = HOOKS.into_iter().zip([&progs.on_switch, &progs.on_fork, &progs.on_exec]);
        let attach = |(hook, program): (_, &ProgramMut<'_>)| {
            program.attach().with_context(|| format!("failed to attach to {hook}"))
        };
        let links = courtesy::urgently(|| programs.map(attach).collect::<Result<_>>())?;
        Ok(Self { skel, exits, events, links })
    }

    /// The map that tells the target's threads; other probes share it.
    pub fn threads(&self) -> &impl MapCore {
        &self.skel.maps.threads
    }

    /// The ring of snapshots, which the profile reads.
    pub fn ring(&self) -> &impl MapCore {
        &self.skel.maps.samples
    }

    /// The map of kernel stacks; other probes share it.
    pub fn stack_map(&self) -> &impl MapCore {
        &self.skel.maps.stacks
    }

    /// Starts the watch of all threads of these processes; those already watched are left alone.
    ///
    /// # Errors
    /// A map or the iterator fails.
    pub fn seed(&self, pids: &[u32]) -> Result<()> {
        let seeds = &self.skel.maps.seeds;
        // As many at a time as the map holds: a target may have more processes than that.
        for part in pids.chunks(seeds.max_entries().max(1) as usize) {
            for pid in part {
                let named = seeds.update(&pid.to_ne_bytes(), &[1], MapFlags::ANY);
                named.context("failed to name a process to the kernel")?;
            }
            self.watch_named()?;
            for pid in part {
                let _ = seeds.delete(&pid.to_ne_bytes()); // named twice
            }
        }
        Ok(())
    }

    fn watch_named(&self) -> Result<()> {
        let link = self.skel.progs.seed_threads.attach().context("failed to attach the thread iterator")?;
        let mut nothing = Vec::new();
        read_all(&mut Iter::new(&link)?, &mut nothing).context("failed to walk the threads")?;
        Ok(())
    }

    /// Rows of all living threads of the target, as of now. The `last` call also books open waits.
    ///
    /// # Errors
    /// The iterator fails.
    pub fn read(&mut self, last: bool) -> Result<Vec<ThreadRow>> {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            bss.last_read = last;
        }
        let link = self.skel.progs.read_threads.attach().context("failed to attach the thread iterator")?;
        let mut bytes = Vec::new();
        read_all(&mut Iter::new(&link)?, &mut bytes).context("failed to read the threads")?;
        Ok(decode_threads(&bytes))
    }

    /// Threads that ended and programs that were replaced since the last call.
    ///
    /// # Errors
    /// The ring fails.
    pub fn events(&self) -> Result<Vec<ThreadRow>> {
        self.exits.consume().context("failed to read the ring of thread ends")?;
        Ok(self.events.take())
    }

    /// What threads waited for since the last call, waits that are still on included as of the last [`Ledger::read`].
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn waits(&self) -> Result<Vec<WaitRow>> {
        let rows = kernel_map::drain::<types::wait_key, types::wait_value>(&self.skel.maps.waits)?;
        Ok(rows.into_iter().map(|(key, value)| wait_row(&key, &value)).collect())
    }

    /// One kernel stack: addresses, leaf first; `None` = there is none of this key.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn stack(&self, key: u64) -> Result<Option<Vec<u64>>> {
        let found = self.skel.maps.stacks.lookup(&key.to_ne_bytes(), MapFlags::ANY);
        let bytes = found.context("failed to read the map of stacks")?;
        Ok(bytes.and_then(|bytes| kernel_map::row(&bytes)).map(addresses))
    }

    /// Takes the kernel stacks out of their map, so that it never fills: addresses, leaf first. Rows that come later may
    /// still name one of them.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn stacks(&self) -> Result<HashMap<u64, Vec<u64>>> {
        let rows = kernel_map::drain::<u64, types::kernel_stack>(&self.skel.maps.stacks)?;
        Ok(rows.into_iter().map(|(key, stack)| (key, addresses(stack))).collect())
    }

    /// Run-queue time of the target since the last call, ns, by the process that ran until the target got the CPU and by
    /// the length of the wait, as table `neighbour` has it.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn delayers(&self) -> Result<Vec<(u32, Vec<u64>)>> {
        let rows = kernel_map::drain::<u32, types::delayed>(&self.skel.maps.delayers)?;
        Ok(rows.into_iter().map(|(pid, delayed)| (pid, delayed.by_length.to_vec())).collect())
    }

    /// What was counted and lost.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counts(&self) -> Result<Counts> {
        Ok(Counts::sum(kernel_map::per_cpu::<types::counts>(&self.skel.maps.counts)?))
    }
}

impl Probe for Ledger<'_> {
    fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        vec![("sched_switch", self.skel.progs.on_switch.as_fd())]
    }

    fn runs(&self) -> Result<Vec<(&'static str, u64)>> {
        Ok(vec![("sched_switch", self.counts()?.switches)])
    }

    fn losses(&self) -> Result<Vec<Kept>> {
        let c = self.counts()?;
        Ok(vec![
            Kept::of("thread ends", c.exits, c.exits_lost),
            Kept::of("program starts", c.execs, c.execs_lost),
            Kept { what: "threads", kept: c.forks, lost: c.forks_lost },
            Kept::of("waits", c.waits, c.waits_lost),
            Kept::of("stacks of waits", c.stacks, c.stacks_lost),
            Kept { what: "stacks of programs that wait", kept: c.snapshots, lost: c.snapshots_lost },
            Kept::of("names of who was in the way", c.delays, c.delays_lost),
        ])
    }

    /// That threads got their CPU without anybody noticing, often enough to blur what they were off it for.
    fn gaps(&self) -> Result<Vec<Gap>> {
        const WORTH_A_WORD: f64 = 0.01;
        let c = self.counts()?;
        let part = c.stays_unseen as f64 / c.stays.max(1) as f64;
        let why = format!(
            "the kernel did not show {:.1} % of them: such a stay is taken to be as long as its CPU time, and what \
             interrupts took of it counts as off the CPU",
            part * 100.0
        );
        let gap = (part >= WORTH_A_WORD).then(|| Gap::partial("arrivals on a CPU", part, why));
        Ok(gap.into_iter().collect())
    }

    fn map_bytes(&self) -> u64 {
        run_stats::map_bytes(self.skel.object(), &[])
    }

    fn detach(&mut self) {
        self.links.clear();
    }
}

/// Has all entries of maps made when they are loaded. The hook at the switch writes these under the lock of a CPU's run queue:
/// the kernel's allocator may wake a thread of its own there, for which it would wait for that very lock.
fn make_entries_at_once<const N: usize>(maps: [&mut OpenMapMut<'_>; N]) -> Result<()> {
    for map in maps {
        map.set_map_flags(map.map_flags() & !libbpf_sys::BPF_F_NO_PREALLOC)?;
    }
    Ok(())
}

fn addresses(stack: types::kernel_stack) -> Vec<u64> {
    stack.ip.into_iter().take_while(|&ip| ip != 0).collect()
}

/// Rows as the iterator writes them, one after the other.
pub(crate) fn decode_threads(bytes: &[u8]) -> Vec<ThreadRow> {
    bytes.chunks_exact(size_of::<types::thread_row>()).filter_map(kernel_map::row).map(thread_row).collect()
}

/// For fuzzing: entries of the map of waits, one after the other.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode_waits(bytes: &[u8]) -> Vec<WaitRow> {
    let (key, value) = (size_of::<types::wait_key>(), size_of::<types::wait_value>());
    let entries = bytes.chunks_exact(key + value).map(|entry| entry.split_at(key));
    entries.filter_map(|(k, v)| Some(wait_row(&kernel_map::row(k)?, &kernel_map::row(v)?))).collect()
}

fn thread_row(raw: types::thread_row) -> ThreadRow {
    ThreadRow {
        tgid: raw.tgid,
        tid: raw.tid,
        ppid: raw.ppid,
        what: match raw.what {
            1 => What::Exited,
            2 => What::Execed,
            _ => What::Living,
        },
        signal: raw.signal,
        at_ns: raw.at,
        born_ns: raw.born,
        comm: comm_of_chars(&raw.comm),
        sum: raw.sum,
    }
}

fn wait_row(key: &types::wait_key, value: &types::wait_value) -> WaitRow {
    WaitRow {
        tgid: value.tgid,
        tid: key.tid,
        syscall: key.syscall,
        fd_kind: shapes::fd_kind(key.fd_kind),
        file_system: key.file_system,
        state: key.state,
        io_wait: key.io_wait != 0,
        stack: key.stack,
        count: value.count,
        total_ns: value.total,
        max_ns: value.max,
    }
}
