// SPDX-License-Identifier: Apache-2.0
//! Which capabilities a capture needs, and for whom. The lists were found by trying; the tests of the command take
//! one away at a time and look at what is refused.

use std::fs::{self, File};
use std::io::ErrorKind::PermissionDenied;

use crate::proc::Proc;

/// A capability of the kernel's, and what wakewalk does with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Capability {
    /// Bit in the kernel's masks (include/uapi/linux/capability.h).
    bit: u32,
    /// `CAP_BPF`.
    pub name: &'static str,
    /// What it allows.
    pub allows: &'static str,
}

/// Needed by every capture: without them no probe loads.
pub const PROBES: [Capability; 2] = [
    Capability { bit: 39, name: "CAP_BPF", allows: "loading the probes and their maps" },
    Capability { bit: 38, name: "CAP_PERFMON", allows: "attaching them to the scheduler and to CPU clocks" },
];

/// Needed beside them where the target belongs to another user, or has privileges of its own.
pub const OTHERS: [Capability; 2] = [
    Capability { bit: 19, name: "CAP_SYS_PTRACE", allows: "looking at another user's mappings and descriptors" },
    Capability { bit: 2, name: "CAP_DAC_READ_SEARCH", allows: "reading another user's binaries and socket lists" },
];

/// Never needed: what they add is a gap without them.
pub const EXTRAS: [Capability; 2] = [
    Capability {
        bit: 34,
        name: "CAP_SYSLOG",
        allows: "telling interrupts from those whom they interrupt (kernel.kptr_restrict)",
    },
    Capability {
        bit: 21,
        name: "CAP_SYS_ADMIN",
        allows: "the price of the probes (run statistics), and backlogs and connection tracking in another network \
                 namespace",
    },
];

/// Those of `wanted` that this process does not have.
pub fn missing(wanted: &'static [Capability]) -> Vec<&'static Capability> {
    missing_of(wanted, effective(&fs::read_to_string("/proc/self/status").unwrap_or_default()))
}

fn missing_of(wanted: &'static [Capability], effective: u64) -> Vec<&'static Capability> {
    wanted.iter().filter(|c| effective >> c.bit & 1 == 0).collect()
}

/// `CAP_BPF and CAP_PERFMON`.
pub fn names(capabilities: &[&Capability]) -> String {
    capabilities.iter().map(|c| c.name).collect::<Vec<_>>().join(" and ")
}

fn effective(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    mask.unwrap_or(0)
}

/// What keeps this process from looking into another one; empty where nothing does. Found by opening what a capture
/// opens: whose a process is does not say, for it may have changed its user or hide its memory.
pub fn missing_for(proc: &Proc, pids: &[u32]) -> Vec<&'static Capability> {
    let refused = |tried: std::io::Result<()>| tried.is_err_and(|e| e.kind() == PermissionDenied);
    let closed = |pid: &u32| {
        let maps = || File::open(proc.of(*pid, "maps")).and_then(|file| file.metadata().map(drop));
        let descriptors = || fs::read_dir(proc.of(*pid, "fd")).map(drop);
        let binary = || File::open(proc.of(*pid, "exe")).map(drop);
        refused(maps()) || refused(descriptors()) || refused(binary())
    };
    if pids.iter().any(closed) { missing(&OTHERS) } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let user = effective("Name:\tx\nCapEff:\t0000000000000000\n");
        assert_eq!(names(&missing_of(&PROBES, user)), "CAP_BPF and CAP_PERFMON");
        let some = effective("CapEff:\t0000008000000004\n");
        assert_eq!(names(&missing_of(&PROBES, some)), "CAP_PERFMON");
        assert_eq!(names(&missing_of(&OTHERS, some)), "CAP_SYS_PTRACE");
        assert_eq!(missing_of(&EXTRAS, effective("no such line")).len(), 2);
    }

    #[test]
    fn nobody_is_kept_from_looking_at_himself() {
        let proc = Proc::new(std::path::Path::new("/"));
        assert!(missing_for(&proc, &[std::process::id()]).is_empty());
        assert!(missing_for(&proc, &[u32::MAX]).is_empty(), "gone is not refused");
    }
}
