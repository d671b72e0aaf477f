// SPDX-License-Identifier: Apache-2.0
//! Files of /proc, /sys and the cgroup trees, and answers of netlink.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| collect::fuzzing::proc(bytes));
