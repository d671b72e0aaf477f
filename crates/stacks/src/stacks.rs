// SPDX-License-Identifier: Apache-2.0
//! The way in and out: samples to numbers, and numbers to names, at once or at the end.

use std::collections::{HashMap, HashSet};

use gimli::UnwindContext;
use recording::tables::{Frame, Stack};

use crate::{
    images::Images,
    memory::Memory,
    names::{self, Effort, KernelNames, Unnamed, perf_map::PerfMaps},
    process::Process,
    registers::{self, Registers},
    table::{Code, Frames, StackIds},
    walk::{Unwound, Walker},
};

/// Processes whose mappings are kept; the one that was longest unused makes room for a new one.
const MAX_PROCESSES: usize = 256;

/// One thread, stopped.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// Process id, in this program's pid namespace.
    pub pid: u32,
    /// General registers in user mode.
    pub regs: Registers,
    /// The bytes that begin at the stack pointer.
    pub stack: &'a [u8],
}

/// What did not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Frames given out as unknown because there were too many different ones.
    pub frames: u64,
    /// Stacks given out as 0 for the same reason.
    pub stacks: u64,
}

/// Collects stacks and names them.
///
/// Holds files open: up to 512 binaries, 256 processes' memory and 64 perf maps.
pub struct Stacks {
    images: Images,
    perf_maps: PerfMaps,
    frames: Frames,
    ids: StackIds,
    /// Frames whose source lines are wanted.
    lined: HashSet<u32>,
    unnamed: Unnamed,
    processes: HashMap<u32, Process>,
    samples: u64,
    context: Box<UnwindContext<usize>>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self::new()
    }
}

impl Stacks {
    /// Knows nothing yet; opens nothing.
    pub fn new() -> Self {
        let mut frames = Frames::default();
        // First, so that it is there when there is no room for more.
        frames.id(Code::Unknown);
        let (perf_maps, ids, lined, unnamed, processes) = Default::default();
        let context = Box::new(UnwindContext::new());
        Stacks { images: Images::new(), perf_maps, frames, ids, lined, unnamed, processes, samples: 0, context }
    }

    /// Frame ids of a kernel stack, given leaf first: the first address is where the CPU was, the
    /// others are return addresses.
    pub fn kernel(&mut self, addresses: &[u64]) -> Vec<u32> {
        let call = |(depth, address): (usize, &u64)| Code::Kernel(address.wrapping_sub(u64::from(depth > 0)));
        addresses.iter().enumerate().map(call).map(|code| self.frames.id(code)).collect()
    }

    /// Unwinds the user stack of a thread; its functions get names and source lines.
    pub fn user(&mut self, snapshot: &Snapshot<'_>) -> Unwound {
        let unwound = self.user_functions(snapshot);
        for id in &unwound.frames {
            if self.lined.insert(*id)
                && let Some(code @ Code::Image(..)) = self.frames.told(*id)
            {
                self.unnamed.frames.push((*id, code)); // it may have a row already, without a line
            }
        }
        unwound
    }

    /// The same without source lines, which are dear: debug information may have to be unpacked whole.
    pub fn user_functions(&mut self, snapshot: &Snapshot<'_>) -> Unwound {
        let memory = Memory::new(snapshot.regs.sp, snapshot.stack);
        self.walker(snapshot.pid).walk(registers::Frame::from(&snapshot.regs), memory)
    }

    /// Reads the mappings of a process and opens its files now, for one that may be gone before
    /// its first sample is looked at. Costs a look-up if that was done before.
    pub fn see(&mut self, pid: u32) {
        self.walker(pid);
    }

    /// The process ended, or executes another program: its addresses mean nothing any more.
    pub fn forget(&mut self, pid: u32) {
        if let Some(process) = self.processes.remove(&pid) {
            process.end(&mut self.perf_maps);
        }
    }

    /// Id of a whole stack, 0 for the empty one. `complete` is that of the user part; a stack of
    /// the kernel alone is complete.
    pub fn intern(&mut self, kernel: &[u32], user: &[u32], complete: bool) -> u32 {
        self.ids.id(kernel, user, complete || user.is_empty())
    }

    /// What was lost so far.
    pub fn lost(&self) -> Lost {
        Lost { frames: self.frames.lost, stacks: self.ids.lost }
    }

    /// Stacks that came since the last call, and rows of frames that were named in it: of what is told once, in the same
    /// call or in a later one, with a source line in a second row if that was asked for later. To name all takes as long as
    /// the symbol tables are large: some 0.1 s, some seconds at most.
    pub fn fresh(&mut self, effort: Effort, kernel: &mut KernelNames<'_>) -> (Vec<Stack>, Vec<Frame>) {
        self.images.end_slice();
        self.unnamed.frames.extend(self.frames.fresh());
        let who = (&mut self.images, &mut self.perf_maps, kernel);
        (self.ids.fresh(), names::resolve(&mut self.unnamed, effort, &self.lined, who))
    }

    fn walker(&mut self, pid: u32) -> Walker<'_> {
        self.samples += 1;
        if !self.processes.contains_key(&pid) {
            self.make_room();
        }
        let process = self.processes.entry(pid).or_insert_with(|| Process::new(pid, &mut self.images));
        process.used = self.samples;
        Walker {
            process,
            images: &mut self.images,
            perf_maps: &mut self.perf_maps,
            frames: &mut self.frames,
            context: &mut self.context,
        }
    }

    fn make_room(&mut self) {
        let oldest = self.processes.iter().min_by_key(|(_, p)| p.used).map(|(pid, _)| *pid);
        if let Some(pid) = oldest.filter(|_| self.processes.len() >= MAX_PROCESSES) {
            self.forget(pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use testing::{given, need};

    use super::*;

    #[test]
    fn can_move_to_another_thread() {
        fn send<T: Send>(_: T) {}
        send(Stacks::new());
    }

    #[test]
    fn kernel_stacks_are_named() {
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap();
        let address = symbols.lines().find_map(|l| l.strip_suffix(" T vfs_read")?.split(' ').next()).unwrap();
        let start = u64::from_str_radix(address, 16).unwrap();
        need!(given(start != 0, "kallsyms shows no addresses to this user"));
        let mut stacks = Stacks::new();
        let frames = stacks.kernel(&[start, start + 1, 1]);
        let id = stacks.intern(&frames, &[], false);
        let (rows, frames) = stacks.fresh(Effort::All, &mut KernelNames::List);
        assert!(rows[0].id == id && rows[0].complete);
        let names: Vec<&str> = rows[0].frames.iter().map(|id| frames[*id as usize - 1].symbol.as_str()).collect();
        assert_eq!(names, ["vfs_read", "vfs_read", ""]);
        assert!(frames[1].kind == "kernel" && frames[1].module == "kernel" && frames[1].offset == 0);
    }
}
