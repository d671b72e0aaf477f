// SPDX-License-Identifier: Apache-2.0
//! What our programs cost inside the kernel. The kernel's statistics slow down every run of every
//! program on the host, so they are switched on for short slices; runs are counted all the time by
//! the programs themselves. The switch is a descriptor: it goes off when this process ends.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, Object, libbpf_sys};

use super::{Kept, Probe};
use crate::proc::field;

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
    let text = about(program);
    Runs { count: number(&text, "run_cnt"), ns: number(&text, "run_time_ns") }
}

/// What the programs of a probe missed since they were loaded, each by its name: the kernel skips one whose hook is met again on
/// the CPU on which it runs (of a tracepoint since Linux 6.1, 05b24ff9b2cf), and nothing but this number tells. Only those that
/// missed anything.
///
/// # Errors
/// A map of the probe cannot be read.
pub fn missed(probe: &dyn Probe) -> Result<Vec<Kept>> {
    let missed = |(what, program)| (what, number(&about(program), "recursion_misses"));
    let missed: Vec<(&'static str, u64)> = probe.programs().into_iter().map(missed).filter(|of| of.1 > 0).collect();
    if missed.is_empty() {
        return Ok(Vec::new());
    }
    let runs = probe.runs()?;
    let kept = |of: &str| runs.iter().find(|(name, _)| *name == of).map_or(0, |(_, runs)| *runs);
    Ok(missed.into_iter().map(|(what, lost)| Kept { what, kept: kept(what), lost }).collect())
}

/// What the kernel tells of a descriptor.
fn about(fd: BorrowedFd<'_>) -> String {
    std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).unwrap_or_default()
}

/// A number of it; 0 = there is none, as on older kernels.
fn number(text: &str, name: &str) -> u64 {
    field(text, name).and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// Kernel memory of a probe's maps, bytes, as their descriptors' fdinfo tells; those that it shares are of somebody else.
pub fn map_bytes(probe: &Object, shared: &[&str]) -> u64 {
    let own = probe.maps().filter(|map| !shared.iter().any(|name| map.name() == *name));
    own.map(|map| number(&about(map.as_fd()), "memlock")).sum()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn numbers_of_a_descriptor() {
        let text = "prog_type:\t26\nrun_time_ns:\t31\nrun_cnt:\t7\nrecursion_misses:\t4\nverified_insns:\t90\n";
        assert_eq!(["run_cnt", "recursion_misses", "memlock"].map(|name| number(text, name)), [7, 4, 0]);
    }

    /// A probe whose program has missed so much, as far as a file can be one.
    struct Idle(File);

    impl Probe for Idle {
        fn programs(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
            vec![("hook", self.0.as_fd())]
        }

        fn runs(&self) -> Result<Vec<(&'static str, u64)>> {
            Ok(vec![("hook", 9)])
        }

        fn losses(&self) -> Result<Vec<Kept>> {
            Ok(Vec::new())
        }

        fn map_bytes(&self) -> u64 {
            0
        }

        fn detach(&mut self) {}
    }

    #[test]
    fn who_missed_nothing_has_no_row() {
        assert_eq!(missed(&Idle(File::open("/dev/null").unwrap())).unwrap(), []);
    }
}
