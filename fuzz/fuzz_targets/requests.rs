// SPDX-License-Identifier: Apache-2.0
//! What somebody asks an endpoint of `load --serve`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| load::fuzzing::requests(bytes));
