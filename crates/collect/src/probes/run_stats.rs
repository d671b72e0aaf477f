// SPDX-License-Identifier: Apache-2.0
//! What our programs cost inside the kernel. The kernel's statistics slow down every run of every
//! program on the host, so they are switched on for short slices; runs are counted all the time by
//! the programs themselves. The switch is a descriptor: it goes off when this process ends.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, Object, libbpf_sys};

/// Statistics are on while this lives.
pub struct Slice(#[allow(dead_code, reason = "closing it is its purpose")] OwnedFd);

/// Switches the kernel's statistics on.
///
/// # Errors
/// The kernel refuses, or is older than 5.8.
pub fn start() -> Result<Slice> {
    // SAFETY: no pointers; the call returns a descriptor or a negative error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd))
            .context("failed to switch on the run statistics of BPF programs (needs CAP_SYS_ADMIN)");
    }
    // SAFETY: a descriptor that the kernel has just made and that nobody else owns.
    Ok(Slice(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Runs and run time of one program while statistics were on, since it was loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs {
    /// Runs.
    pub count: u64,
    /// ns.
    pub ns: u64,
}

/// Reads a program's statistics from its descriptor's fdinfo.
pub fn read(program: BorrowedFd<'_>) -> Runs {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd())).unwrap_or_default();
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim_start_matches(':').trim().parse().ok()).unwrap_or(0)
    };
    Runs { count: field("run_cnt"), ns: field("run_time_ns") }
}

/// Kernel memory of a probe's maps, bytes, as their descriptors' fdinfo tells; those that it shares are of somebody else.
pub fn map_bytes(probe: &Object, shared: &[&str]) -> u64 {
    let own = probe.maps().filter(|map| !shared.iter().any(|name| map.name() == *name));
    own.map(|map| memlock(map.as_fd())).sum()
}

fn memlock(map: BorrowedFd<'_>) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", map.as_raw_fd())).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("memlock:")?.trim().parse().ok()).unwrap_or(0)
}
