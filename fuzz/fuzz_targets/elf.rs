// SPDX-License-Identifier: Apache-2.0
//! A binary, a perf map or a list of mappings of a hostile process, with its stack.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stacks::fuzzing::elf(bytes));
