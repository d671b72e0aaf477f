// SPDX-License-Identifier: Apache-2.0
//! Bytes as the rings, iterators and maps of the kernel hand them out.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| collect::fuzzing::events(bytes));
