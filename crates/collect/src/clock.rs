// SPDX-License-Identifier: Apache-2.0
//! The clocks of a recording: CLOCK_MONOTONIC for every `t_ns`, the wall clock once, as an anchor; and our own CPU time.

use std::time::SystemTime;

/// CLOCK_MONOTONIC in ns: the clock of `bpf_ktime_get_ns`, so that samplers and probes agree.
#[allow(unsafe_code, reason = "the standard library does not give the clock's absolute value")]
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec that lives through the call. The call cannot fail: the
    // clock exists on every kernel.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// CPU time of the calling thread in ns.
#[allow(unsafe_code, reason = "the standard library does not give it")]
pub fn thread_cpu_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as above; the clock of the calling thread always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// A time as RFC 3339 in UTC, with milliseconds: `2026-11-20T11:00:38.250Z`.
pub fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn monotonic_does_not_go_back() {
        let first = super::monotonic_ns();
        assert!(first > 0 && super::monotonic_ns() >= first);
    }
}
