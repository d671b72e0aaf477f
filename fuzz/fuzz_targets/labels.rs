// SPDX-License-Identifier: Apache-2.0
//! The first bytes of requests, as clients send them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| collect::fuzzing::labels(bytes));
