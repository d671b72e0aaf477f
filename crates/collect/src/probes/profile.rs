// SPDX-License-Identifier: Apache-2.0
//! The profile's user side: opens the clocks and hands out samples as they come.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::rc::Rc;

use anyhow::{Context, Result};
use libbpf_rs::skel::{OpenSkel as _, Skel};
use libbpf_rs::{Link, OpenObject, RingBuffer, RingBufferBuilder};
use plain::Plain;

use super::ledger::Ledger;
use super::user_stack::chunks;
use super::{Kept, Probe, Room, comm_of_chars, kernel_map, kernel_types, perf_event, refusal, run_stats};
use crate::courtesy;

mod skel {
    #![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]
    include!(concat!(env!("OUT_DIR"), "/profile.skel.rs"));
}
use skel::types;

/// User registers in the order of the kernel's `pt_regs` on x86-64.
pub type Registers = [u64; 21];

/// What a thread was doing when a snapshot was taken of it; the C enum `moment`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// It ran.
    #[default]
    AtClock,
    /// It was about to wait in its system call.
    BeforeWait,
    /// Its system call was about to wake another thread.
    BeforeWakeup,
}

/// One sample as the kernel wrote it, before unwinding.
#[derive(Clone, Debug)]
pub struct RawSample {
    /// CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// Process id.
    pub tgid: u32,
    /// Thread id.
    pub tid: u32,
    /// CPU number.
    pub cpu: u32,
    /// The CPU was in user mode.
    pub user_mode: bool,
    /// User mode, just behind a system call instruction.
    pub after_call: bool,
    /// What the thread was doing.
    pub moment: Moment,
    /// Samples of the full rate that it stands for.
    pub weight: u32,
    /// Thread's command name.
    pub comm: String,
    /// User registers.
    pub registers: Registers,
    /// Kernel stack, leaf first.
    pub kernel: Vec<u64>,
    /// User stack from sp upwards.
    pub stack: Vec<u8>,
}

/// What the profile counted about itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Clock interrupts seen.
    pub hits: u64,
    /// Samples of the target.
    pub samples: u64,
    /// Samples that found the ring full.
    pub lost: u64,
    /// Samples of other processes.
    pub neighbours: u64,
    /// Those that found the map full.
    pub neighbours_lost: u64,
}

// SAFETY: integers only: any bytes are valid. Generated from the C source, as all types of maps and rings are.
unsafe impl Plain for types::sample {}
// SAFETY: as above.
unsafe impl Plain for types::neighbour_key {}
// SAFETY: as above.
unsafe impl Plain for types::neighbour {}
// SAFETY: as above.
unsafe impl Plain for types::profile_counts {}

/// The loaded profile; clocks run while it lives.
pub struct Profile<'o> {
    skel: skel::ProfileSkel<'o>,
    ring: RingBuffer<'o>,
    fresh: Rc<RefCell<Vec<RawSample>>>,
    clocks: BTreeMap<u32, (OwnedFd, Link)>,
    hz: u32,
}

impl<'o> Profile<'o> {
    /// Loads the program and starts a clock of `hz` on each of `cpus`; `stack_bytes` of user stack
    /// are copied for each sample (rounded up to pages, 32 KiB at most).
    ///
    /// # Errors
    /// The kernel refuses the program or the clocks.
    pub fn load(
        storage: &'o mut MaybeUninit<OpenObject>,
        ledger: &Ledger<'_>,
        cpus: &[u32],
        hz: u32,
        stack_bytes: u32,
    ) -> Result<Self> {
        Self::load_in(storage, ledger, cpus, hz, stack_bytes, Room::Whole)
    }

    /// The same with other room in its maps.
    ///
    /// # Errors
    /// As above.
    pub fn load_in(
        storage: &'o mut MaybeUninit<OpenObject>,
        ledger: &Ledger<'_>,
        cpus: &[u32],
        hz: u32,
        stack_bytes: u32,
        room: Room,
    ) -> Result<Self> {
        let mut open = refusal::open(skel::ProfileSkelBuilder::default(), storage, "the profile's program")?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.task_type = kernel_types::task();
            rodata.stack_chunks = chunks(stack_bytes);
        }
        room.apply(open.open_object_mut())?;
        open.maps.threads.reuse_fd(ledger.threads().as_fd()).context("failed to share the map of threads")?;
        open.maps.samples.reuse_fd(ledger.ring().as_fd()).context("failed to share the ring of samples")?;
        let skel = refusal::load(open, "the kernel refused the profile's program")?;
        let fresh = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&fresh);
        let mut rings = RingBufferBuilder::new();
        rings.add(&skel.maps.samples, move |bytes| {
            sink.borrow_mut().extend(parse(bytes));
            0
        })?;
        let ring = rings.build().context("failed to map the ring of samples")?;
        // A CPU may go away between the list of all and here.
        let clock = |&cpu: &u32| match clock(&skel, cpu, hz) {
            Err(why) if perf_event::is_without_cpu(&why) => None,
            made => Some(made.map(|made| (cpu, made))),
        };
        let clocks = courtesy::urgently(|| cpus.iter().filter_map(clock).collect::<Result<_>>())?;
        Ok(Self { skel, ring, fresh, clocks, hz })
    }

    /// Has a clock on each of `cpus`, those that work now, unless all were stopped: the clock of a CPU that goes away ticks no more
    /// even when that comes back. Returns those that have a new one, of the full rate; one that cannot have any has none.
    pub fn follow(&mut self, cpus: &[u32]) -> Vec<u32> {
        if self.clocks.is_empty() || cpus.is_empty() {
            return Vec::new(); // no list of them could be read
        }
        self.clocks.retain(|cpu, _| cpus.contains(cpu));
        let mut new = Vec::new();
        for cpu in cpus {
            if !self.clocks.contains_key(cpu)
                && let Ok(clock) = clock(&self.skel, *cpu, self.hz)
            {
                self.clocks.insert(*cpu, clock);
                self.set_pace(*cpu, 1);
                new.push(*cpu);
            }
        }
        new
    }

    /// CPUs that have a clock.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.clocks.keys().copied()
    }

    /// Lets the clock of a CPU tick so many times slower than at first; a sample stands for as many then. Where the kernel
    /// refuses, because the CPU went away, all stays as it is.
    pub fn set_pace(&mut self, cpu: u32, weight: u8) {
        let period_ns = u64::from(weight.max(1)) * 1_000_000_000 / u64::from(self.hz.max(1));
        let (Some((clock, _)), Some(bss)) = (self.clocks.get(&cpu), self.skel.maps.bss_data.as_deref_mut()) else {
            return;
        };
        if let Some(of_cpu) = bss.weights.get_mut(cpu as usize)
            && perf_event::set_period(clock, period_ns).is_ok()
        {
            *of_cpu = weight;
        }
    }

    /// Samples since the last call.
    ///
    /// # Errors
    /// The ring fails.
    pub fn samples(&self) -> Result<Vec<RawSample>> {
        self.ring.consume().context("failed to read the ring of samples")?;
        Ok(self.fresh.take())
    }

    /// Samples since the last call that found a process outside the target: (pid, CPU, name, samples).
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn neighbours(&self) -> Result<Vec<(u32, u32, String, u64)>> {
        let rows = kernel_map::drain::<types::neighbour_key, types::neighbour>(&self.skel.maps.neighbours)?;
        Ok(rows.into_iter().map(|(k, v)| (k.tgid, k.cpu, comm_of_chars(&v.comm), v.samples)).collect())
    }

    /// What was counted and lost.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counts(&self) -> Result<Counts> {
        let mut sum = Counts::default();
        for c in kernel_map::per_cpu::<types::profile_counts>(&self.skel.maps.profile_counts)? {
            sum.hits += c.hits;
            sum.samples += c.samples;
            sum.lost += c.lost;
            sum.neighbours += c.neighbours;
            sum.neighbours_lost += c.neighbours_lost;
        }
        Ok(sum)
    }
}

impl Probe for Profile<'_> {
    fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        vec![("cpu-clock", self.skel.progs.on_sample.as_fd())]
    }

    fn runs(&self) -> Result<Vec<(&'static str, u64)>> {
        Ok(vec![("cpu-clock", self.counts()?.hits)])
    }

    fn losses(&self) -> Result<Vec<Kept>> {
        let c = self.counts()?;
        Ok(vec![
            Kept { what: "samples", kept: c.samples, lost: c.lost },
            Kept::of("samples of others", c.neighbours, c.neighbours_lost),
        ])
    }

    fn map_bytes(&self) -> u64 {
        run_stats::map_bytes(self.skel.object(), &["threads", "samples"])
    }

    /// Stops the clocks.
    fn detach(&mut self) {
        self.clocks.clear();
    }
}

fn clock(skel: &skel::ProfileSkel<'_>, cpu: u32, hz: u32) -> Result<(OwnedFd, Link)> {
    let clock = perf_event::cpu_clock(cpu, hz)?;
    // The link closes the descriptor that it is given when it goes, so it gets one of its own; where none comes to be, that
    // one is ours to close.
    let given = clock.try_clone().context("failed to share the CPU clock with its link")?;
    let link =
        skel.progs.on_sample.attach_perf_event(given.as_raw_fd()).context("failed to attach to the CPU clock")?;
    let _ = given.into_raw_fd();
    Ok((clock, link))
}

impl Moment {
    fn of(number: u8) -> Self {
        match number {
            0 => Self::AtClock,
            1 => Self::BeforeWait,
            _ => Self::BeforeWakeup,
        }
    }
}

/// One record of the ring; `None` = it is shorter than its head.
pub(crate) fn parse(bytes: &[u8]) -> Option<RawSample> {
    let head: types::sample = kernel_map::row(bytes)?;
    let stack = bytes.get(size_of::<types::sample>()..)?;
    let frames = usize::try_from(head.kernel_bytes).unwrap_or(0) / size_of::<u64>();
    Some(RawSample {
        at_ns: head.at,
        tgid: head.tgid,
        tid: head.tid,
        cpu: head.cpu,
        user_mode: head.user_mode != 0,
        after_call: head.after_call != 0,
        moment: Moment::of(head.moment),
        weight: head.weight.into(),
        comm: comm_of_chars(&head.comm),
        registers: registers(&head.regs),
        kernel: head.kernel_ip[..frames.min(head.kernel_ip.len())].to_vec(),
        stack: stack[..stack.len().min(head.stack_bytes as usize)].to_vec(),
    })
}

/// In the order of `pt_regs`.
fn registers(r: &types::user_regs) -> Registers {
    [
        r.r15, r.r14, r.r13, r.r12, r.bp, r.bx, r.r11, r.r10, r.r9, r.r8, r.ax, r.cx, r.dx, r.si, r.di, r.orig_ax,
        r.ip, r.cs, r.flags, r.sp, r.ss,
    ]
}
