// SPDX-License-Identifier: Apache-2.0
//! One file of a recording, read as a user reads a recording that somebody sent.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| recording::fuzzing::recording(bytes));
