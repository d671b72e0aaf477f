//! Go: where its runtime's few special functions are, and how to get from a C function's stack
//! back to the goroutine that called it.
//!
//! A C function called from Go runs on the thread's system stack (g0). `runtime.asmcgocall` puts,
//! before the call, the goroutine's address at 8(SP) and the depth of the goroutine's own stack at
//! 0(SP); the stack's upper end is the second word of the goroutine. That layout is the same from
//! Go 1.4 to 1.26 at least; it is believed only if `runtime.cgocall` is found where it should be.

use std::{fs::File, ops::Range};

use crate::{elf::Layout, memory::Memory, source::Source};

/// Largest symbol and string table that is searched.
const MAX_TABLE_BYTES: u64 = 128 << 20;

/// Most of a goroutine's stack that is read: the frames above a cgo call are near its lower end.
const MAX_STACK_BYTES: u64 = 64 << 10;

/// Size of an entry of `.symtab`.
const SYMBOL_BYTES: usize = 24;

/// Addresses, as the file counts them, of functions of Go's runtime.
#[derive(Debug, Default)]
pub(crate) struct Runtime {
    asmcgocall: Range<u64>,
    /// The wrapper through which Go code calls `asmcgocall`.
    asmcgocall_wrapper: Range<u64>,
    cgocall: Range<u64>,
    /// Where goroutines and threads begin.
    first: Vec<Range<u64>>,
}

impl Runtime {
    /// Finds them by name; `None` for what is not Go, or is stripped of its symbols.
    pub(crate) fn find(source: &Source, layout: &Layout) -> Option<Runtime> {
        layout.section(".gopclntab").or_else(|| layout.section(".go.buildinfo"))?;
        let table = |name| layout.section(name).and_then(|s| source.read(s.offset, s.size, MAX_TABLE_BYTES));
        let (symbols, names) = (table(".symtab")?, table(".strtab")?);
        let mut runtime = Runtime::default();
        for symbol in symbols.chunks_exact(SYMBOL_BYTES) {
            let word = |at: usize| symbol[at..at + 8].iter().rev().fold(0, |n: u64, b| n << 8 | u64::from(*b));
            let name = names.get(word(0) as u32 as usize..).unwrap_or_default();
            if name.starts_with(b"runtime.") || name.starts_with(b"_rt0_") {
                let name = name.split(|b| *b == 0).next().unwrap_or_default();
                runtime.note(name, word(8)..word(8).saturating_add(word(16)));
            }
        }
        Some(runtime)
    }

    fn note(&mut self, name: &[u8], range: Range<u64>) {
        match name {
            b"runtime.asmcgocall.abi0" => self.asmcgocall = range,
            b"runtime.asmcgocall" => self.asmcgocall_wrapper = range,
            b"runtime.cgocall" => self.cgocall = range,
            b"runtime.goexit.abi0" | b"runtime.goexit" | b"runtime.rt0_go.abi0" | b"runtime.rt0_go" => {
                self.first.push(range);
            }
            b"runtime.mstart.abi0" | b"runtime.mstart" | b"_rt0_amd64_linux" => self.first.push(range),
            _ => {}
        }
    }

    /// Is this the function that switches to the C stack?
    pub(crate) fn switches(&self, vaddr: u64) -> bool {
        // Before ABI wrappers (Go 1.17) the plain name is the function itself.
        self.asmcgocall.contains(&vaddr) || (self.asmcgocall.is_empty() && self.asmcgocall_wrapper.contains(&vaddr))
    }

    /// Is this the function that calls [`Self::switches`], and nothing else does?
    pub(crate) fn calls_c(&self, vaddr: u64) -> bool {
        self.cgocall.contains(&vaddr)
    }

    pub(crate) fn wraps_switch(&self, vaddr: u64) -> bool {
        self.asmcgocall_wrapper.contains(&vaddr)
    }

    pub(crate) fn is_first_function(&self, vaddr: u64) -> bool {
        self.first.iter().any(|range| range.contains(&vaddr))
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
