// SPDX-License-Identifier: Apache-2.0
//! Go: where its runtime's few special functions are, and how to get from a C function's stack
//! back to the goroutine that called it.
//!
//! A C function called from Go runs on the thread's system stack (g0). `runtime.asmcgocall` puts,
//! before the call, the goroutine's address at 8(SP) and the depth of the goroutine's own stack at
//! 0(SP); the stack's upper end is the second word of the goroutine. That is so in Go 1.18 to 1.26
//! at least; it is believed only if `runtime.cgocall` is found where it should be.

mod pclntab;

use std::fs::File;

use crate::{elf::Layout, memory::Memory, row::Row, source::Source};
use pclntab::Pclntab;

/// The table's section, in programs and in position-independent ones.
pub(crate) const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];

/// Most of a goroutine's stack that is read: the frames above a cgo call are near its lower end.
const MAX_STACK_BYTES: u64 = 64 << 10;

/// What the runtime of a Go binary knows of its code.
pub(crate) struct Runtime {
    table: Pclntab,
}

/// The functions through which Go calls C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cgo {
    /// `runtime.cgocall`, below the goroutine's own functions.
    Call,
    /// The wrapper by which it calls the next one.
    Wrapper,
    /// `runtime.asmcgocall`, which goes over to the system stack.
    Switch,
}

impl Runtime {
    /// `None` for what is not Go, or older than Go 1.18.
    pub(crate) fn find(source: &Source, layout: &Layout) -> Option<Runtime> {
        Some(Runtime { table: Pclntab::read(source, layout)? })
    }

    /// How to get from the code at `vaddr` to its caller.
    pub(crate) fn row(&self, vaddr: u64) -> Option<Row> {
        self.table.row(self.table.function(vaddr)?, vaddr)
    }

    /// Name of the function at `vaddr`.
    pub(crate) fn name(&self, vaddr: u64) -> Option<String> {
        Some(String::from_utf8_lossy(self.table.name(self.table.function(vaddr)?)?).into_owned())
    }

    /// Source file and line at `vaddr`.
    pub(crate) fn line(&self, vaddr: u64) -> Option<(String, u32)> {
        let (file, line) = self.table.line(self.table.function(vaddr)?, vaddr)?;
        Some((String::from_utf8_lossy(file).into_owned(), line))
    }

    pub(crate) fn cgo(&self, vaddr: u64) -> Option<Cgo> {
        let function = self.table.function(vaddr)?;
        match self.table.name(function)? {
            b"runtime.cgocall" => Some(Cgo::Call),
            b"runtime.asmcgocall" if function.switches_stack() => Some(Cgo::Switch),
            b"runtime.asmcgocall" => Some(Cgo::Wrapper),
            _ => None,
        }
    }
}

/// A goroutine's stack from where it called C, and the stack pointer there.
pub(crate) struct Goroutine {
    pub(crate) stack: Memory<'static>,
    pub(crate) sp: u64,
}

/// Reads the stack of the goroutine that `asmcgocall`, with stack pointer `sp`, left behind.
///
/// This is read after the sample was taken: the goroutine may have gone on since. The caller must
/// check that the stack still looks like a call into C.
pub(crate) fn goroutine(sp: u64, memory: &Memory<'_>, mem: &File) -> Option<Goroutine> {
    let depth = memory.word(sp)?;
    let g = memory.word(sp.checked_add(8)?)?;
    // 0 = the call came from a system stack: there is no goroutine to go back to.
    let top_at = (g != 0).then_some(g)?.checked_add(8)?;
    let top = Memory::read(mem, top_at, 8)?.word(top_at)?;
    let sp = top.checked_sub(depth)?;
    let length = depth.min(MAX_STACK_BYTES);
    Some(Goroutine { stack: Memory::read(mem, sp, usize::try_from(length).ok()?)?, sp })
}
