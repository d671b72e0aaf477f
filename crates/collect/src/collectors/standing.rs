// SPDX-License-Identifier: Apache-2.0
//! Waits that go on at the end: where requests hang. What ended a wait tells of it; of a deadlock, or of an answer that never comes,
//! there is only the thread that stands, and where in its program it does.

#![allow(unsafe_code)] // reading C structs out of an iterator; every use says why it is sound

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::mem::take;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use libbpf_rs::Iter;
use plain::Plain;
use recording::Tables;
use recording::tables::{Gap, Standing as Row};
use stacks::{Snapshot, Stacks};

use super::profile::samples::registers;
use crate::collector::{Collector, Kind, Shared, SliceEnd, Slot, Start};
use crate::file_names::FileNames;
use crate::probes::exchanges::InHand;
use crate::probes::{comm_of_chars, ip_of, kernel_map, kernel_types, read_all, refusal, shapes};
use crate::proc::Proc;

mod skel {
    #![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used)]
    include!(concat!(env!("OUT_DIR"), "/standing.skel.rs"));
}
use skel::types;

/// What is known of it before it is started.
pub const KIND: Kind = Kind {
    gap: "standing",
    facility: Some(("waits that go on", "where requests hang; without them no deadlock is told")),
    tables: |tables| tables.extend::<Row>([]),
    start: |start, slot| Ok(Box::new(Standing::load(start, slot)?)),
};

/// Threads that are read; of a target of which more stand, the last ones are not.
const MOST_READ: usize = 20_000;
/// Rows of a recording. Those that are left out have no request in hand, or there are more alike than anybody reads; no event was lost.
const MOST_ROWS: usize = 1_000;
/// User stacks that are copied: in all, and of threads that stand at the same place.
const MOST_STACKS: usize = 64;
const MOST_OF_A_PLACE: usize = 4;
/// A task's state.
const UNINTERRUPTIBLE: u32 = 2;

// SAFETY: integers only, and no padding that is read: any bytes are valid. Generated from the C source.
unsafe impl Plain for types::standing_row {}

/// The loaded iterator, and what it found.
struct Standing<'o> {
    skel: skel::StandingSkel<'o>,
    root: PathBuf,
    stack_bytes: u32,
    found: Vec<Found>,
    gaps: Vec<Gap>,
}

/// A thread as it stood.
struct Found {
    raw: types::standing_row,
    /// The top of its user stack; empty = not taken.
    memory: Vec<u8>,
    /// Where a mutex has its owner; 0 = not read.
    owner: u32,
}

impl<'o> Standing<'o> {
    fn load(start: &Start<'_, 'o>, slot: Slot<'o>) -> Result<Self> {
        let builder = skel::StandingSkelBuilder::default();
        let mut open = refusal::open(builder, slot, "the program that reads waits")?;
        open.maps.threads.reuse_fd(start.ledger.threads().as_fd()).context("failed to share the map of threads")?;
        open.maps.stacks.reuse_fd(start.ledger.stack_map().as_fd()).context("failed to share the map of stacks")?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.task_type = kernel_types::task();
            shapes::mark_subjects(&mut rodata.subjects);
        }
        let skel = refusal::load(open, "the kernel refused the program that reads waits")?;
        let root = start.plan.root.clone();
        Ok(Self { skel, root, stack_bytes: start.stack_bytes, found: Vec::new(), gaps: Vec::new() })
    }

    fn look(&self) -> Result<Vec<types::standing_row>> {
        const ROW: usize = size_of::<types::standing_row>();
        let link = self.skel.progs.read_standing.attach().context("failed to attach the iterator over waits")?;
        let mut bytes = Vec::new();
        let mut rows = Iter::new(&link)?.take((MOST_READ * ROW) as u64);
        read_all(&mut rows, &mut bytes).context("failed to read the waits that go on")?;
        Ok(bytes.chunks_exact(ROW).filter_map(kernel_map::row).collect())
    }
}

impl Collector for Standing<'_> {
    fn prove(&mut self, _: &Shared<'_>) -> Result<()> {
        self.look().map(drop)
    }

    /// Looks while all still stand: what is made of it can stand back behind others.
    fn conclude(&mut self, shared: &mut Shared<'_>) -> Result<()> {
        let mut raw = self.look()?;
        let requests = |row: &types::standing_row| shared.in_hand.get(&row.tid).map_or(0, |of| of.requests);
        let asked = raw.iter().filter(|row| requests(row) > 0).count();
        self.gaps = gaps(&raw, asked);
        raw.sort_by_key(|row| (requests(row) == 0, std::cmp::Reverse(row.wait), row.tid));
        raw.truncate(MOST_ROWS);
        self.found = Copier::new(&self.root, self.stack_bytes).copy(raw);
        Ok(())
    }

    fn slice(&mut self, shared: &mut Shared<'_>, end: &SliceEnd, tables: &mut Tables) -> Result<()> {
        let mut files = FileNames::new(&self.root);
        let mut owners = Owners::new(&self.root, end);
        for found in take(&mut self.found) {
            let Found { raw, memory, .. } = &found;
            let stack = shared.kernel_stack(raw.stack)?;
            let user_stack = user_stack(raw, memory, &mut shared.stacks);
            let path = files.name(shapes::fd_kind(raw.fd_kind), (raw.tgid, registers(&raw.regs).di, raw.inode));
            let in_hand = shared.in_hand.get(&raw.tid).copied().unwrap_or_default();
            let now_ns = shared.start_ns + end.t_ns;
            let mut row = row(raw, in_hand, now_ns);
            (row.t_ns, row.stack, row.user_stack, row.path) = (end.t_ns, stack, user_stack, path);
            row.owner = owners.outer(raw.tgid, found.owner);
            tables.extend([row]);
        }
        Ok(())
    }

    fn gaps(&mut self, _: &Shared<'_>) -> Result<Vec<Gap>> {
        Ok(self.gaps.clone())
    }

    fn stop(&mut self, _: &mut Shared<'_>) -> bool {
        false // it does nothing before the end
    }
}

/// What is missing of the threads that were read, of which so many are `asked` something. An idle pool, however large, is told by a part
/// of it.
fn gaps(read: &[types::standing_row], asked: usize) -> Vec<Gap> {
    let part = |of: usize, all: usize| of as f64 / all.max(1) as f64;
    let partial = |unseen, why| Gap::partial(KIND.gap, unseen, why);
    let unread = (read.len() >= MOST_READ)
        .then(|| partial(0.0, format!("of the threads that stand, only the first {MOST_READ} were looked at")));
    let untold = asked.checked_sub(MOST_ROWS).filter(|more| *more > 0).map(|more| {
        let why = format!("of {asked} threads that stand with a request in hand, {MOST_ROWS} are told");
        partial(part(more, asked), why)
    });
    let without = read.iter().filter(|row| row.stack == 0).count();
    let unknown = (without * 100 > read.len()).then(|| {
        let why = format!("of {} threads that stand, {without} have no kernel stack: what keeps stacks was full", read.len());
        partial(part(without, read.len()), why)
    });
    [unread, untold, unknown].into_iter().flatten().collect()
}

/// Copies what may be gone soon.
struct Copier<'a> {
    root: &'a Path,
    stack_bytes: usize,
    memories: HashMap<u32, Option<File>>,
    taken: usize,
    by_place: HashMap<(u32, i32, u64, u64), usize>,
}

impl<'a> Copier<'a> {
    fn new(root: &'a Path, stack_bytes: u32) -> Self {
        let stack_bytes = stack_bytes as usize;
        Self { root, stack_bytes, memories: HashMap::new(), taken: 0, by_place: HashMap::new() }
    }

    fn copy(&mut self, raw: Vec<types::standing_row>) -> Vec<Found> {
        // Where one stands that nothing may interrupt, the memory map may be locked, and whoever reads memory would stand there too.
        let held = raw.iter().filter(|row| u32::from(row.state) & UNINTERRUPTIBLE != 0);
        self.memories.extend(held.map(|row| (row.tgid, None)));
        raw.into_iter().map(|raw| Found { memory: self.stack(&raw), owner: self.owner(&raw), raw }).collect()
    }

    fn stack(&mut self, raw: &types::standing_row) -> Vec<u8> {
        let regs = registers(&raw.regs);
        let own = shapes::is_in_own_frame(regs.di, regs.sp);
        let place = (raw.tgid, raw.syscall, if own { 0 } else { regs.di }, raw.stack);
        let of_place = self.by_place.entry(place).or_default();
        if self.taken >= MOST_STACKS || *of_place >= MOST_OF_A_PLACE || regs.sp == 0 {
            return Vec::new();
        }
        *of_place += 1;
        self.taken += 1;
        self.read(raw.tgid, regs.sp, self.stack_bytes)
    }

    /// A mutex of glibc is three words: what threads sleep on, which is 2 then, how often it is held, and by whom.
    fn owner(&mut self, raw: &types::standing_row) -> u32 {
        let regs = registers(&raw.regs);
        if libc::c_long::from(raw.syscall) != libc::SYS_futex || regs.dx as u32 != 2 {
            return 0;
        }
        let bytes = self.read(raw.tgid, regs.di.wrapping_add(8), 4);
        bytes.try_into().map_or(0, u32::from_ne_bytes)
    }

    /// What there is of so many bytes.
    fn read(&mut self, pid: u32, at: u64, length: usize) -> Vec<u8> {
        let open = || File::open(self.root.join(format!("proc/{pid}/mem"))).ok();
        let Some(memory) = self.memories.entry(pid).or_insert_with(open) else { return Vec::new() };
        let mut bytes = vec![0; length];
        let read = memory.read_at(&mut bytes, at).unwrap_or(0); // less where the mapping ends
        bytes.truncate(read);
        bytes
    }
}

fn user_stack(raw: &types::standing_row, memory: &[u8], stacks: &mut Stacks) -> u32 {
    if memory.is_empty() {
        return 0;
    }
    let user = stacks.user_functions(&Snapshot { pid: raw.tgid, regs: registers(&raw.regs), stack: memory });
    stacks.intern(&[], &user.frames, user.complete)
}

/// Whose thread id stands in a mutex. A process in a pid namespace knows its threads by other numbers.
struct Owners<'a> {
    root: &'a Path,
    living: HashSet<(u32, u32)>,
    inner: HashMap<u32, HashMap<u32, u32>>,
}

impl<'a> Owners<'a> {
    fn new(root: &'a Path, end: &SliceEnd) -> Self {
        let living = end.living.iter().map(|row| (row.tgid, row.tid)).collect();
        Self { root, living, inner: HashMap::new() }
    }

    /// The thread as this host numbers it; 0 = there is none.
    fn outer(&mut self, pid: u32, owner: u32) -> u32 {
        if owner == 0 {
            return 0;
        }
        let inner = self.inner.entry(pid).or_insert_with(|| inner(self.root, pid));
        let outer = if inner.is_empty() { owner } else { inner.get(&owner).copied().unwrap_or(0) };
        if self.living.contains(&(pid, outer)) { outer } else { 0 }
    }
}

/// Threads of a process in a pid namespace of its own by their number there; empty = it is in none.
fn inner(root: &Path, pid: u32) -> HashMap<u32, u32> {
    let proc = Proc::new(root);
    if proc.inner_pid(pid) == pid {
        return HashMap::new();
    }
    let threads = fs::read_dir(root.join(format!("proc/{pid}/task"))).into_iter().flatten().flatten();
    let tids = threads.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    tids.take(MOST_READ).map(|tid| (proc.inner_pid(tid), tid)).collect()
}

fn row(raw: &types::standing_row, in_hand: InHand, now_ns: u64) -> Row {
    let regs = registers(&raw.regs);
    let is_call = raw.syscall >= 0;
    Row {
        pid: raw.tgid,
        tid: raw.tid,
        comm: comm_of_chars(&raw.comm),
        wait_ns: raw.wait,
        syscall: raw.syscall,
        args: if is_call { vec![regs.di, regs.si, regs.dx, regs.r10] } else { Vec::new() },
        own_frame: is_call && shapes::is_in_own_frame(regs.di, regs.sp),
        fd_kind: shapes::fd_kind(raw.fd_kind).into(),
        file_system: raw.file_system,
        state: raw.state.into(),
        io_wait: raw.io_wait != 0,
        family: raw.ports.family.into(),
        local_port: raw.ports.local.into(),
        remote_port: raw.ports.remote.into(),
        peer: ip_of(raw.ports.family, raw.ports.peer),
        requests: in_hand.requests,
        request_ns: if in_hand.requests > 0 { now_ns.saturating_sub(in_hand.since_ns) } else { 0 },
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_pool_that_is_larger_than_the_table_is_no_gap() {
        let row = |stack| types::standing_row { stack, ..types::standing_row::default() };
        let said = |rows: usize, asked| gaps(&vec![row(7); rows], asked);
        assert_eq!(said(MOST_ROWS * 5, 3), []);
        assert_eq!(said(MOST_ROWS, MOST_ROWS), []);
        assert_eq!(said(5_000, 2_000).iter().map(|gap| gap.unseen_share).collect::<Vec<_>>(), [0.5]);
        assert_eq!(said(MOST_READ, 0).len(), 1);
        assert_eq!(gaps(&[row(0), row(7)], 1).iter().map(|gap| gap.unseen_share).collect::<Vec<_>>(), [0.5]);
        assert_eq!(gaps(&[], 0), []);
    }
}
