// SPDX-License-Identifier: Apache-2.0
//! Opening a CPU clock on every CPU. It is a timer of the kernel's, so it works where a guest has no
//! performance counters; it cannot fire while interrupts are off.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::libbpf_sys::{PERF_COUNT_SW_CPU_CLOCK, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, perf_event_attr};

/// `PERF_EVENT_IOC_PERIOD`, which is a macro in C.
const PERIOD: u32 = 0x4008_2404;

/// Lets a CPU clock tick every `ns` from its next tick on.
///
/// # Errors
/// The kernel refuses.
pub fn set_period(clock: &OwnedFd, ns: u64) -> Result<()> {
    // SAFETY: an open perf event; the kernel only reads the number.
    let result = unsafe { libc::ioctl(clock.as_raw_fd(), u64::from(PERIOD), &raw const ns) };
    if result < 0 {
        return Err(io::Error::last_os_error()).context("failed to slow down a CPU clock");
    }
    Ok(())
}

/// Whether a clock was refused because its CPU does not work.
pub fn is_without_cpu(why: &anyhow::Error) -> bool {
    let number = why.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    matches!(number, Some(libc::ENODEV | libc::ENXIO))
}

/// A CPU clock on `cpu` that fires `hz` times a second.
///
/// # Errors
/// The kernel refuses: `perf_event_paranoid`, seccomp or a missing capability.
pub fn cpu_clock(cpu: u32, hz: u32) -> Result<OwnedFd> {
    let mut attr =
        perf_event_attr { type_: PERF_TYPE_SOFTWARE, config: PERF_COUNT_SW_CPU_CLOCK.into(), ..Default::default() };
    attr.size = u32::try_from(size_of::<perf_event_attr>())?;
    attr.__bindgen_anon_1.sample_freq = hz.into();
    attr.set_freq(1);
    attr.set_exclude_idle(1);
    // SAFETY: `attr` lives through the call and its size is given; the kernel only reads it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attr,
            -1,
            cpu,
            -1,
            libc::c_ulong::from(PERF_FLAG_FD_CLOEXEC),
        )
    };
    if fd < 0 {
        let error = io::Error::last_os_error();
        return Err(error).with_context(|| {
            format!("failed to open the CPU clock of CPU {cpu} (run as root, or with CAP_PERFMON; see kernel.perf_event_paranoid)")
        });
    }
    // SAFETY: a descriptor that the kernel has just made and that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(i32::try_from(fd)?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_went_away_is_told_from_what_is_not_allowed() {
        let refused = |number| Err::<(), _>(io::Error::from_raw_os_error(number)).context("failed").unwrap_err();
        assert!(is_without_cpu(&refused(libc::ENODEV)) && !is_without_cpu(&refused(libc::EACCES)));
    }
}
