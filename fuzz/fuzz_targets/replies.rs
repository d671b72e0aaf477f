// SPDX-License-Identifier: Apache-2.0
//! What a service that is loaded answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| load::fuzzing::reply(bytes));
