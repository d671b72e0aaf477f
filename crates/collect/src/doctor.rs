// SPDX-License-Identifier: Apache-2.0
//! What this kernel and these privileges allow, found by trying: configuration files and lists of
//! features say otherwise often enough.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::Serialize;

use crate::collector::{Kind, Shared, Start};
use crate::collectors::{ALL, slots};
use crate::plan::Plan;
use crate::privileges::{self, Capability, EXTRAS, OTHERS, PROBES};
use crate::probes::ledger::Ledger;
use crate::probes::run_stats;
use crate::tested_kernels;
use crate::{clock, host};

/// One facility and what it is worth.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Facility {
    /// Short name.
    pub name: &'static str,
    /// It was tried; without the privileges that it needs, nobody can tell.
    pub tried: bool,
    /// It works.
    pub works: bool,
    /// What it gives; or, if it does not work, what is lost.
    pub meaning: &'static str,
    /// Why it does not work, with the remedy where there is one; else empty.
    pub why: String,
}

/// The result of the examination: the contract of `wakewalk doctor --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Health {
    /// Version of this contract, 1.
    pub schema: u32,
    /// Always `doctor`.
    pub kind: &'static str,
    /// `wakewalk 0.1.0`, the version that tried.
    pub tool: &'static str,
    /// Kernel release.
    pub kernel: String,
    /// The kernel is of a series that wakewalk is tested on.
    pub tested: bool,
    /// Capabilities without which no probe could be tried; empty = they were tried.
    pub missing: String,
    /// Programs can be loaded at all: `diagnose` works.
    pub bpf: bool,
    /// One row a facility.
    pub facilities: Vec<Facility>,
}

/// Tries everything that a capture uses. Loads and attaches for a moment, observes nobody.
pub fn examine() -> Health {
    let root = Path::new("/");
    let mut facilities = Vec::from(capabilities());
    facilities.push(btf());
    facilities.extend(probes());
    facilities.push(file(
        "kernel symbols",
        "interrupts told from those whom they interrupt",
        host::shows_kernel_symbols(),
        "kernel.kptr_restrict hides addresses; set it to 1 or lower and run with CAP_SYSLOG, or as root",
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
    let kernel = host::inventory(root).kernel;
    let missing = privileges::names(&privileges::missing(&PROBES));
    let tool = concat!("wakewalk ", env!("CARGO_PKG_VERSION"));
    Health {
        schema: 1,
        kind: "doctor",
        tool,
        tested: tested_kernels::covers(&kernel),
        missing,
        kernel,
        bpf,
        facilities,
    }
}

fn file(name: &'static str, meaning: &'static str, works: bool, remedy: &str) -> Facility {
    Facility { name, tried: true, works, meaning, why: if works { String::new() } else { remedy.into() } }
}

/// The capabilities, each group with what it is for.
fn capabilities() -> [Facility; 3] {
    let group = |name, meaning, wanted: &'static [Capability]| {
        let missing: Vec<String> =
            privileges::missing(wanted).iter().map(|c| format!("{} ({})", c.name, c.allows)).collect();
        let why = if missing.is_empty() { String::new() } else { format!("missing {}", missing.join(", ")) };
        Facility { name, tried: true, works: missing.is_empty(), meaning, why }
    };
    [
        group("privileges for probes", "every capture", &PROBES),
        group("privileges for others' processes", "services of another user: their functions and sockets", &OTHERS),
        group("privileges for more detail", "names of kernel functions, the price of the probes", &EXTRAS),
    ]
}

fn btf() -> Facility {
    file(
        "kernel type information (BTF)",
        "lets one binary fit this kernel; without it no probe loads",
        Path::new("/sys/kernel/btf/vmlinux").exists(),
        "needs a kernel built with CONFIG_DEBUG_INFO_BTF (all distributions since about 2021)",
    )
}

const RUN_STATS: (&str, &str) = ("run statistics of programs", "what the capture itself costs in the kernel");

fn tried<T>((name, meaning): (&'static str, &'static str), outcome: Result<T>) -> Facility {
    let why = outcome.err().map_or_else(String::new, |e| format!("{e:#}"));
    Facility { name, tried: true, works: why.is_empty(), meaning, why }
}

fn untried((name, meaning): (&'static str, &'static str), why: &str) -> Facility {
    Facility { name, tried: false, works: false, meaning, why: format!("not tried: {why}") }
}

/// The collectors that a kernel could refuse. The first of them is the ledger, on which the others build.
fn facilities() -> impl Iterator<Item = (&'static Kind, (&'static str, &'static str))> {
    ALL.iter().filter_map(|kind| Some((*kind, kind.facility?)))
}

fn probes() -> Vec<Facility> {
    let missing = privileges::missing(&PROBES);
    if !missing.is_empty() {
        let why = format!("this user lacks {}; run `sudo wakewalk doctor`", privileges::names(&missing));
        return facilities().map(|(_, about)| about).chain([RUN_STATS]).map(|about| untried(about, &why)).collect();
    }
    let mut found = tried_with(&Plan::of_nobody());
    found.push(match found.first() {
        Some(ledger) if ledger.works => tried(RUN_STATS, run_stats::start()),
        _ => untried(RUN_STATS, "the thread ledger comes first"),
    });
    found
}

/// Starts the collectors of a capture one by one, and has each do at once what it would do later.
fn tried_with(plan: &Plan) -> Vec<Facility> {
    let mut slots = slots();
    let mut slots = slots.iter_mut();
    let mut refused = None;
    let ledger = slots.next().context("no room for the ledger's object").and_then(Ledger::load);
    let Ok(ledger) = ledger.map_err(|why| refused = Some(why)) else {
        let of = |(_, about)| match refused.take() {
            Some(why) => tried(about, Err::<(), _>(why)),
            None => untried(about, "the thread ledger comes first"),
        };
        return facilities().map(of).collect();
    };
    let shared = Shared::new(plan, ledger, clock::monotonic_ns());
    let (ledger, began) = (&shared.ledger, Duration::ZERO);
    let mut start = Start { plan, ledger, began, stack_bytes: 4096, sample_hz: 0, bursts: None };
    let mut found = Vec::new();
    for ((kind, about), slot) in facilities().zip(slots) {
        let started = (kind.start)(&mut start, slot);
        found.push(tried(about, started.and_then(|mut collector| collector.prove(&shared))));
    }
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
            assert!(f.works == f.why.is_empty() && f.tried >= f.works, "{f:?}");
        }
    }
}
