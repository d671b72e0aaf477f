// SPDX-License-Identifier: Apache-2.0
//! Registers and a copy of the stack in, named frames out.
//!
//! A sample of a thread is its registers and the bytes above its stack pointer. [`Stacks::user`]
//! walks them with the call frame information (`.eh_frame`, Go's `.gopclntab`) of the files that the
//! process has mapped, and by frame pointers where there is none (code compiled at run time), until
//! the thread's first function.
//! Frames are numbers until [`Stacks::fresh`] names them; the files are opened when a
//! process is first seen, so its stacks still get names when it is gone by then.
//!
//! The files and the memory belong to the observed process, and the reader is root: nothing is
//! mapped (a file that is truncated under a mapping kills the reader), every size and offset is
//! checked against a bound, every loop ends, and no input may panic. That is why the unwinder is
//! built on `gimli` itself: an expression in a hostile `.eh_frame` that jumps backwards for ever
//! has to run into a limit.
//!
//! x86-64 Linux only; there is no support for 32-bit processes (their frames stay unnamed).

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("wakewalk-stacks unwinds x86-64 Linux stacks only");

mod build_id;
mod cfi;
mod elf;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod golang;
#[cfg(test)]
mod hostile;
mod image;
mod images;
mod maps;
mod memory;
mod names;
mod process;
mod registers;
mod row;
mod source;
mod stacks;
mod table;
mod walk;

pub use build_id::{Build, builds};
pub use names::{Effort, KernelNames};
pub use registers::Registers;
pub use stacks::{Lost, Snapshot, Stacks};
pub use walk::Unwound;
