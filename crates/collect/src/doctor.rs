// SPDX-License-Identifier: Apache-2.0
//! What this kernel and these privileges allow, found by trying: configuration files and lists of
//! features say otherwise often enough.

use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

use serde::Serialize;

use crate::host;
use crate::probes::calls::{Calls, Kind};
use crate::probes::ledger::Ledger;
use crate::probes::profile::Profile;
use crate::probes::run_stats;

/// One facility and what it is worth.
#[derive(Clone, Debug, Serialize)]
pub struct Facility {
    /// Short name.
    pub name: &'static str,
    /// It works.
    pub works: bool,
    /// What it gives; or, if it does not work, what is lost.
    pub meaning: &'static str,
    /// Why it does not work, with the remedy where there is one; else empty.
    pub why: String,
}

/// The result of the examination.
#[derive(Clone, Debug, Serialize)]
pub struct Health {
    /// Kernel release.
    pub kernel: String,
    /// Programs can be loaded at all: `diagnose` works.
    pub bpf: bool,
    /// One row a facility.
    pub facilities: Vec<Facility>,
}

/// Capabilities that a capture needs, by bit and name.
const CAPABILITIES: [(u32, &str); 4] =
    [(39, "CAP_BPF"), (38, "CAP_PERFMON"), (19, "CAP_SYS_PTRACE"), (21, "CAP_SYS_ADMIN")];

/// Capabilities that a capture needs and this process does not have. Empty for root.
pub fn missing_capabilities() -> Vec<&'static str> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    let has = |bit: u32| effective.is_some_and(|caps| caps >> bit & 1 == 1);
    CAPABILITIES.iter().filter(|(bit, _)| !has(*bit)).map(|(_, name)| *name).collect()
}

/// Tries everything that a capture uses. Loads and attaches for a moment, observes nobody.
pub fn examine() -> Health {
    let root = Path::new("/");
    let mut facilities = vec![privileges(), btf()];
    facilities.extend(probes());
    facilities.push(file(
        "kernel symbols",
        "names of kernel functions on stacks",
        fs::read_to_string("/proc/kallsyms")
            .is_ok_and(|t| t.lines().take(50).any(|l| !l.starts_with("0000000000000000"))),
        "kernel.kptr_restrict hides addresses; set it to 1 or lower, or run as root",
    ));
    facilities.push(file(
        "pressure stall information",
        "shares of time in which work stood still for CPU, memory or disk",
        Path::new("/proc/pressure/cpu").exists(),
        "boot with psi=1 (CONFIG_PSI)",
    ));
    facilities.push(file(
        "CPU limits of cgroups",
        "quota and throttling of the target's cgroup",
        limits_visible(),
        "mount the cpu controller (cgroup v2, or the v1 cpu hierarchy)",
    ));
    let bpf = facilities.iter().any(|f| f.name == "thread ledger" && f.works);
    Health { kernel: host::inventory(root).kernel, bpf, facilities }
}

fn file(name: &'static str, meaning: &'static str, works: bool, remedy: &str) -> Facility {
    Facility { name, works, meaning, why: if works { String::new() } else { remedy.into() } }
}

fn privileges() -> Facility {
    let missing = missing_capabilities();
    let why = if missing.is_empty() { String::new() } else { format!("missing {}: run as root", missing.join(", ")) };
    Facility {
        name: "privileges",
        works: missing.is_empty(),
        meaning: "loading probes, reading other users' processes",
        why,
    }
}

fn btf() -> Facility {
    file(
        "kernel type information (BTF)",
        "lets one binary fit this kernel; without it no probe loads",
        Path::new("/sys/kernel/btf/vmlinux").exists(),
        "needs a kernel built with CONFIG_DEBUG_INFO_BTF (all distributions since about 2021)",
    )
}

fn tried(name: &'static str, meaning: &'static str, error: Option<anyhow::Error>) -> Facility {
    Facility { name, works: error.is_none(), meaning, why: error.map_or_else(String::new, |e| format!("{e:#}")) }
}

fn probes() -> Vec<Facility> {
    let (mut a, mut b, mut c) = (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a);
    let mut found = vec![tried(
        "thread ledger",
        "where every thread's time goes; nothing can be diagnosed without it",
        ledger.as_ref().err().map(|e| anyhow::anyhow!("{e:#}")),
    )];
    let Ok(ledger) = ledger else { return found };
    let cpus = host::online_cpus(Path::new("/"));
    let profile = Profile::load(&mut b, ledger.threads(), &cpus, 1, 4096);
    found.push(tried(
        "on-CPU profile",
        "user and kernel time, functions, flame graph, suspicion of busy polls",
        profile.err(),
    ));
    let calls = Calls::load(&mut c, ledger.threads()).and_then(|mut calls| calls.open(Kind::Latency).map(drop));
    found.push(tried(
        "counted system calls",
        "arguments and results; without them a busy poll is `medium` at best",
        calls.err(),
    ));
    found.push(tried(
        "run statistics of programs",
        "what the capture itself costs in the kernel",
        run_stats::start().err(),
    ));
    found
}

/// Either hierarchy shows a cpu controller.
fn limits_visible() -> bool {
    let v2 =
        fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").is_ok_and(|t| t.split_whitespace().any(|c| c == "cpu"));
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let v1 = |line: &str| {
        let mut words = line.split(' ');
        words.nth(2) == Some("cgroup") && words.next().is_some_and(|options| options.split(',').any(|o| o == "cpu"))
    };
    v2 || mounts.lines().any(v1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_examination_never_fails_and_explains_what_is_missing() {
        let health = super::examine();
        assert!(!health.kernel.is_empty() && health.facilities.len() >= 6);
        for f in &health.facilities {
            assert!(f.works == f.why.is_empty(), "{f:?}");
        }
    }
}
