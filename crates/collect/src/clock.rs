// SPDX-License-Identifier: Apache-2.0
//! The clocks of a recording: CLOCK_MONOTONIC for every `t_ns`, the wall clock once, as an anchor; and our own CPU time.

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_getres, clock_gettime};

/// CLOCK_MONOTONIC in ns: the clock of `bpf_ktime_get_ns`, so that samplers and probes agree.
pub fn monotonic_ns() -> u64 {
    ns(ClockId::Monotonic)
}

/// Time since the boot, suspended or not: what the kernel dates programs by.
pub fn since_boot() -> Duration {
    Duration::from_nanos(ns(ClockId::Boottime))
}

/// Length of the kernel's timer tick (a jiffy) in ns: what its coarse clock resolves.
pub fn tick_ns() -> u64 {
    clock_getres(ClockId::MonotonicCoarse).tv_nsec.unsigned_abs() // a tick is no second
}

/// CPU time of the calling thread in ns.
pub fn thread_cpu_ns() -> u64 {
    ns(ClockId::ThreadCPUTime)
}

/// CPU time of this process in ns, threads that have ended included.
pub fn process_cpu_ns() -> u64 {
    ns(ClockId::ProcessCPUTime)
}

fn ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock); // cannot fail: every kernel has these clocks
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The last second that RFC 3339 can write, of the year 9999, since 1970.
const LAST_SECOND: Duration = Duration::from_secs(253_402_300_799);

/// A time as RFC 3339 in UTC, with milliseconds: `2026-11-20T11:00:38.250Z`. Clocks and files may bear any time: of one that
/// cannot be written, before 1970 or after 9999, the nearest that can.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().min(LAST_SECOND);
    humantime::format_rfc3339_millis(SystemTime::UNIX_EPOCH + since).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_cannot_be_written_is_the_nearest_that_can() {
        let written = |seconds: i64| {
            let away = Duration::from_secs(seconds.unsigned_abs());
            let epoch = SystemTime::UNIX_EPOCH;
            rfc3339(if seconds < 0 { epoch - away } else { epoch + away })
        };
        assert_eq!(written(1_700_000_000), "2023-11-14T22:13:20.000Z");
        assert_eq!((written(-1), written(-(1 << 40))), (written(0), written(0)));
        assert_eq!(written(1 << 40), "9999-12-31T23:59:59.000Z");
    }

    #[test]
    fn monotonic_does_not_go_back() {
        let first = super::monotonic_ns();
        assert!(first > 0 && super::monotonic_ns() >= first);
    }

    #[test]
    fn a_tick_is_what_kernels_are_built_with() {
        let hertz = 1e9 / super::tick_ns() as f64;
        assert!((24.0..=1_200.0).contains(&hertz), "{hertz}");
    }
}
