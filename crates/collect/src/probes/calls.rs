// SPDX-License-Identifier: Apache-2.0
//! The call windows' user side: opens and closes windows, hands out what was counted in them.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use anyhow::{Context, Result};
use libbpf_rs::skel::Skel;
use libbpf_rs::{Link, MapCore, OpenObject, RingBuffer, RingBufferBuilder};
use plain::Plain;
use recording::tables::{Call, CallExample, CallLatency};

use super::shapes::{self, Argument};
use super::{kernel_map, kernel_types, refusal, run_stats};
use crate::clock;

mod skel {
    #![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]
    include!(concat!(env!("OUT_DIR"), "/calls.skel.rs"));
}
use skel::types;

/// Tracepoints that it hangs on.
pub const HOOKS: [&str; 2] = ["sys_exit", "sys_enter"];

/// What a window is to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Arguments and results: the exit hook alone.
    Results,
    /// How long calls take: both hooks.
    Latency,
}

/// What one window counted.
#[derive(Debug, Default)]
pub struct Counted {
    /// By arguments and result.
    pub calls: Vec<Call>,
    /// By time taken.
    pub latencies: Vec<CallLatency>,
    /// A few of them as they were.
    pub examples: Vec<CallExample>,
    /// Calls of the target.
    pub seen: u64,
    /// Calls that found the map full.
    pub lost: u64,
    /// Runs of the hooks, bystanders' too.
    pub hits: u64,
    /// When no call was counted any more, CLOCK_MONOTONIC ns.
    pub closed_ns: u64,
}

// SAFETY: integers only: any bytes are valid. Generated from the C source, as all types of maps and rings are.
unsafe impl Plain for types::example {}
// SAFETY: as above.
unsafe impl Plain for types::call_key {}
// SAFETY: as above.
unsafe impl Plain for types::latency_key {}
// SAFETY: as above.
unsafe impl Plain for types::call_counts {}

/// The loaded programs. No hook is attached but in a window.
pub struct Calls<'o> {
    skel: skel::CallsSkel<'o>,
    ring: RingBuffer<'o>,
    examples: Rc<RefCell<Vec<types::example>>>,
    before: types::call_counts,
}

/// An open window; closing or dropping it takes the hooks off.
pub struct Window(#[allow(dead_code, reason = "dropping the links is their purpose")] Vec<Link>);

impl<'o> Calls<'o> {
    /// Loads the programs.
    ///
    /// # Errors
    /// The kernel refuses a program.
    pub fn load(storage: &'o mut MaybeUninit<OpenObject>, threads: &impl MapCore) -> Result<Self> {
        let mut open = refusal::open(skel::CallsSkelBuilder::default(), storage, "the call windows' programs")?;
        open.maps.threads.reuse_fd(threads.as_fd()).context("failed to share the map of threads")?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.task_type = kernel_types::task();
            for (nr, shape) in rodata.shapes.iter_mut().enumerate() {
                let known = shapes::of(nr);
                shape.takes_fd = u8::from(known.subject.is_descriptor());
                shape.argument_kind = known.argument as u8;
                shape.argument = known.index;
            }
        }
        let skel = refusal::load(open, "the kernel refused the call windows' programs")?;
        let examples = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&examples);
        let mut rings = RingBufferBuilder::new();
        rings.add(&skel.maps.examples, move |bytes| {
            sink.borrow_mut().extend(kernel_map::row::<types::example>(bytes));
            0
        })?;
        let ring = rings.build().context("failed to map the ring of examples")?;
        Ok(Self { skel, ring, examples, before: types::call_counts::default() })
    }

    /// Opens a window: from here every system call of the host pays for the hooks.
    ///
    /// # Errors
    /// The kernel refuses to attach.
    pub fn open(&mut self, kind: Kind) -> Result<Window> {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            bss.examples_taken = 0;
            bss.timed_from = if kind == Kind::Latency { clock::monotonic_ns() } else { 0 };
        }
        let mut links = Vec::new();
        if kind == Kind::Latency {
            links.push(self.skel.progs.on_sys_enter.attach().context("failed to attach to sys_enter")?);
        }
        links.push(self.skel.progs.on_sys_exit.attach().context("failed to attach to sys_exit")?);
        Ok(Window(links))
    }

    /// Closes a window and takes what it counted, as rows of window `id`.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn close(&mut self, window: Window, id: u32, start_ns: u64) -> Result<Counted> {
        drop(window);
        let closed_ns = clock::monotonic_ns();
        self.ring.consume().context("failed to read the ring of examples")?;
        let counts = self.counts()?;
        let counted = Counted {
            calls: kernel_map::drain::<_, u64>(&self.skel.maps.calls)?.iter().map(|(k, n)| call(id, k, *n)).collect(),
            latencies: kernel_map::drain::<_, u64>(&self.skel.maps.latencies)?
                .iter()
                .map(|(k, n)| latency(id, k, *n))
                .collect(),
            examples: self.examples.take().iter().map(|e| example(e, start_ns)).collect(),
            seen: counts.calls - self.before.calls,
            lost: counts.lost - self.before.lost,
            hits: counts.hits - self.before.hits,
            closed_ns,
        };
        self.before = counts;
        Ok(counted)
    }

    fn counts(&self) -> Result<types::call_counts> {
        let mut sum = types::call_counts::default();
        for c in kernel_map::per_cpu::<types::call_counts>(&self.skel.maps.call_counts)? {
            sum.hits += c.hits;
            sum.calls += c.calls;
            sum.lost += c.lost;
        }
        Ok(sum)
    }

    /// The programs, for their run statistics.
    pub fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        vec![("sys_exit", self.skel.progs.on_sys_exit.as_fd()), ("sys_enter", self.skel.progs.on_sys_enter.as_fd())]
    }

    /// Kernel memory of its own maps, bytes.
    pub fn map_bytes(&self) -> u64 {
        run_stats::map_bytes(self.skel.object(), &["threads"])
    }
}

/// Lower bound of the power-of-two bucket with this bit length.
fn from_bits(bits: u32) -> i64 {
    if bits == 0 { 0 } else { 1i64 << (bits - 1).min(62) }
}

fn call(window: u32, key: &types::call_key, count: u64) -> Call {
    let shape = shapes::of(usize::try_from(key.syscall).unwrap_or(usize::MAX));
    let (kind, argument) = match (key.argument, shape.argument) {
        (-2, _) | (_, Argument::None) => ("none", 0),
        (bits, Argument::Size) => ("size", from_bits(u32::from(bits.cast_unsigned()))),
        (-1, _) => ("timeout", -1),
        (bits, _) => ("timeout", from_bits(u32::from(bits.cast_unsigned()))),
    };
    Call {
        window,
        pid: key.tgid,
        tid: key.tid,
        syscall: key.syscall.into(),
        fd: key.fd,
        argument_kind: kind.into(),
        argument,
        result: if key.result <= 0 { key.result.into() } else { from_bits(key.result.cast_unsigned()) },
        count,
    }
}

fn latency(window: u32, key: &types::latency_key, count: u64) -> CallLatency {
    CallLatency {
        window,
        pid: key.tgid,
        tid: key.tid,
        syscall: key.syscall,
        from_ns: from_bits(key.bucket).cast_unsigned(),
        count,
    }
}

fn example(raw: &types::example, start_ns: u64) -> CallExample {
    CallExample {
        t_ns: raw.at.saturating_sub(start_ns),
        pid: raw.tgid,
        tid: raw.tid,
        syscall: i32::try_from(raw.syscall).unwrap_or(-1),
        args: raw.args.to_vec(),
        result: raw.result,
    }
}

/// For fuzzing: an example of the ring, then a key of each map, with the count after them.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode(bytes: &[u8], start_ns: u64) -> Option<(CallExample, Call, CallLatency)> {
    let (first, rest) = bytes.split_at_checked(size_of::<types::example>())?;
    let (counted, timed) = rest.split_at_checked(size_of::<types::call_key>())?;
    let count = kernel_map::row(timed.get(size_of::<types::latency_key>()..)?)?;
    let first = example(&kernel_map::row(first)?, start_ns);
    Some((first, call(1, &kernel_map::row(counted)?, count), latency(1, &kernel_map::row(timed)?, count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_give_their_lower_bound() {
        assert_eq!([0, 1, 2, 3, 21].map(from_bits), [0, 1, 2, 4, 1 << 20]);
    }

    #[test]
    fn endless_zero_and_absent_timeouts_differ() {
        let key = |argument| types::call_key { syscall: libc::SYS_epoll_wait as i16, argument, ..Default::default() };
        let shown = |argument| {
            let c = call(1, &key(argument), 1);
            (c.argument_kind, c.argument)
        };
        assert_eq!(shown(-1), ("timeout".into(), -1));
        assert_eq!(shown(0), ("timeout".into(), 0));
        assert_eq!(shown(-2), ("none".into(), 0));
    }
}
