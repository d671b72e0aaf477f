// SPDX-License-Identifier: Apache-2.0
//! What this kernel and these privileges allow, found by trying: configuration files and lists of
//! features say otherwise often enough.

use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::host;
use crate::privileges::{self, Capability, EXTRAS, OTHERS, PROBES};
use crate::probes::calls::{Calls, Kind};
use crate::probes::connections::Connections;
use crate::probes::exchanges::Exchanges;
use crate::probes::ledger::Ledger;
use crate::probes::profile::Profile;
use crate::probes::run_stats;
use crate::probes::wakeups::Wakeups;
use crate::tested_kernels;

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

const LEDGER: (&str, &str) = ("thread ledger", "where every thread's time goes; nothing can be diagnosed without it");
const PROFILE: (&str, &str) =
    ("on-CPU profile", "user and kernel time, functions, flame graph, suspicion of busy polls");
const CALLS: (&str, &str) =
    ("counted system calls", "arguments and results; without them a busy poll is `medium` at best");
const WAKEUPS: (&str, &str) =
    ("wakeups", "whom the service waits for, walked to the end; without them a wait is not told from idleness");
const CONNECTIONS: (&str, &str) =
    ("connections", "whether requests stand unanswered; without them a queue inside the program goes unnoticed");
const EXCHANGES: (&str, &str) = ("exchanges", "how long requests take; without them response times are unknown");
const RUN_STATS: (&str, &str) = ("run statistics of programs", "what the capture itself costs in the kernel");

fn tried<T>((name, meaning): (&'static str, &'static str), outcome: Result<T, anyhow::Error>) -> Facility {
    let why = outcome.err().map_or_else(String::new, |e| format!("{e:#}"));
    Facility { name, tried: true, works: why.is_empty(), meaning, why }
}

fn untried(why: &str) -> impl Fn((&'static str, &'static str)) -> Facility {
    move |(name, meaning)| Facility { name, tried: false, works: false, meaning, why: format!("not tried: {why}") }
}

fn probes() -> Vec<Facility> {
    let missing = privileges::missing(&PROBES);
    if !missing.is_empty() {
        let why = format!("this user lacks {}; run `sudo wakewalk doctor`", privileges::names(&missing));
        return [LEDGER, PROFILE, CALLS, WAKEUPS, CONNECTIONS, EXCHANGES, RUN_STATS].map(untried(&why)).into();
    }
    let (mut a, mut b, mut c, mut d) =
        (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
    let (mut e, mut f) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = match Ledger::load(&mut a) {
        Ok(ledger) => ledger,
        Err(refused) => {
            let mut found = vec![tried(LEDGER, Err::<(), _>(refused))];
            found.extend(
                [PROFILE, CALLS, WAKEUPS, CONNECTIONS, EXCHANGES, RUN_STATS]
                    .map(untried("the thread ledger comes first")),
            );
            return found;
        }
    };
    let cpus = host::online_cpus(Path::new("/"));
    let profile = Profile::load(&mut b, &ledger, &cpus, 1, 4096).map(drop);
    let calls = Calls::load(&mut c, ledger.threads()).and_then(|mut calls| calls.open(Kind::Latency).map(drop));
    let wakeups = Wakeups::load(&mut d, &ledger).map(drop);
    let connections = Connections::load(&mut e, &ledger).and_then(|connections| connections.look(&[]).map(drop));
    vec![
        tried(LEDGER, Ok(())),
        tried(PROFILE, profile),
        tried(CALLS, calls),
        tried(WAKEUPS, wakeups),
        tried(CONNECTIONS, connections),
        tried(EXCHANGES, Exchanges::load(&mut f, &ledger, []).map(drop)),
        tried(RUN_STATS, run_stats::start()),
    ]
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
