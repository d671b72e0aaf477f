// SPDX-License-Identifier: Apache-2.0
//! One call for all that is ever done with bytes of the observed process, for fuzzing and for the
//! tests that keep what fuzzing found. Not part of the program.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gimli::UnwindContext;

use crate::{
    Registers,
    image::{Image, RowTime},
    maps,
    memory::Memory,
    names,
    registers::{Frame, RA, SP},
    source::Source,
};

/// Bytes at the end of an input that serve as the thread's stack.
const STACK_BYTES: usize = 512;
/// Where that stack is, for the unwinder.
const STACK_AT: u64 = 0x7fff_0000_0000;
/// Addresses that are looked up in one file.
const ADDRESSES: usize = 32;
/// Frames followed from each.
const DEPTH: usize = 16;

/// The first byte chooses what the others are: a perf map, a list of mappings, or (mostly) an ELF file.
pub fn elf(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    match kind {
        b'p' => names::perf_map::use_all(rest),
        b'm' => {
            let _ = maps::parse(rest); // broken lines are left out
        }
        _ => {
            let stack = &rest[rest.len().saturating_sub(STACK_BYTES)..];
            use_file(rest, stack);
        }
    }
}

/// Reads the file, unwinds from addresses all over it, and names them.
pub(crate) fn use_file(bytes: &[u8], stack: &[u8]) {
    let mut image = Image::new("p".into(), Some(Source::Bytes(Arc::from(bytes))), RowTime::default());
    image.load_whole(&mut (1 << 30), 0);
    let mut context = UnwindContext::new();
    let step = (bytes.len() / ADDRESSES).max(1);
    let mut addresses: Vec<u64> = (0..bytes.len()).step_by(step).filter_map(|at| image.vaddr(at as u64)).collect();
    for vaddr in &addresses {
        walk(&mut image, &mut context, *vaddr, stack);
    }
    addresses.sort_unstable();
    addresses.dedup();
    names::name_addresses(
        &image,
        &addresses,
        &addresses.iter().copied().collect(),
        Instant::now() + Duration::from_secs(5),
    );
}

/// From frame to frame as long as the file describes the address.
fn walk(image: &mut Image, context: &mut UnwindContext<usize>, vaddr: u64, stack: &[u8]) {
    let memory = Memory::new(STACK_AT, stack);
    let registers = Registers { ip: vaddr, sp: STACK_AT, bp: STACK_AT + 64, ..Registers::default() };
    let mut frame = Frame::from(&registers);
    for _ in 0..DEPTH {
        let Some(row) = frame.get(RA).and_then(|ip| image.row(ip, context)) else { return };
        let Some(caller) = row.caller(&frame, &memory) else { return };
        if caller.get(SP) <= frame.get(SP) {
            return;
        }
        frame = caller;
    }
}

#[cfg(test)]
mod tests {
    /// Inputs that once crashed, hung or ate the memory.
    #[test]
    fn what_fuzzing_found() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/regressions/elf");
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            super::elf(&std::fs::read(entry.unwrap().path()).unwrap());
        }
    }
}
