// SPDX-License-Identifier: Apache-2.0
//! Bad input and bad luck: everything that goes wrong around a capture must end in a sentence or in an
//! honest verdict, and leave nothing behind. Tests that need BPF are skipped only where a probe load shows that
//! the kernel refuses it.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod arguments;
mod disk;
mod kernel;
mod kill;
mod names;
mod pressure;
mod reader;
mod recordings;
mod signals;
mod storm;
mod target;
mod together;
mod tool;
