// SPDX-License-Identifier: Apache-2.0
//! The language runtime's garbage collector takes the time that the service wants.

mod stood;

use super::{Check, Checked, Outcome, Rule, absent, evidence, explained, found, too_little};
use crate::answer::{Gap, Measured, Unit};
use crate::case::Case;
use crate::facts::garbage::{Collecting, Garbage};
use crate::facts::limits::Limits;
use crate::ledger::threads::Threads;
use crate::runtimes::collectors::Collector;
use crate::statistics::ratio;
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{cores, percent, seconds};

pub(super) static RULE: Rule =
    Rule { cause: "runtime-pause", explain: explain!("runtime-pause"), check: Check::Accuses(check) };

/// Go plans with a quarter of the CPUs while it collects, and takes idle ones beside that: a small healthy heap that is
/// collected all the time was measured at 26 %, other healthy services below 10 %, one without room for its heap at 55 %.
const MIN_SHARE: f64 = 0.4;

/// CPUs: a collector in a service that does nothing keeps nobody waiting.
const MIN_CORES: f64 = 0.1;

/// Of the on-CPU samples, in the program's own threads or with the program stopped: below a tenth, what it does for the
/// collector is less than any other cost of a request.
const MIN_PAUSED: f64 = 0.1;

/// Use of the allowed CPUs, or of the quota, from which on the collector takes what requests want.
const FULL: f64 = 0.9;

fn check(case: &Case) -> Checked {
    match by_share(case) {
        Ok(found @ Outcome::Found(..)) => Ok(found),
        otherwise => stood::check(case).map_or(otherwise, Ok),
    }
}

fn by_share(case: &Case) -> Checked {
    let ledger = case.fact::<Threads>()?;
    let used = ratio(ledger.total.cpu_ns, case.length_ns());
    if used < MIN_CORES {
        return absent(format!("the target used {} (under {MIN_CORES})", cores(used)));
    }
    let Some(Collecting { collector, part, paused }) = case.fact::<Garbage>()?.0 else {
        return absent("no sample is inside a garbage collector that this version knows");
    };
    if part < MIN_SHARE {
        let why = format!("{} of the on-CPU samples are inside the garbage collector (under 40 %)", percent(part));
        return too_little(Measured::new(part, MIN_SHARE, Unit::Share), why);
    }
    if paused < MIN_PAUSED && !is_short_of_cpu(case)? {
        return explained(format!(
            "{} of the on-CPU samples are inside the garbage collector, but beside the program, whose own work does not \
             fill the CPUs; {} (under 10 %) in its place",
            percent(part),
            percent(paused)
        ));
    }
    let headline = format!("the garbage collector of {} takes {} of its CPU time", collector.runtime, percent(part));
    found(finding(case, collector, (part, paused), &ledger), headline, collector.less_often)
}

/// Whether the program wanted CPU time that its own process had. Where others fill the CPUs, they are in the way; and
/// that its threads wait now and then for a collector that starts on all CPUs at once is no shortage.
fn is_short_of_cpu(case: &Case) -> Result<bool, Gap> {
    let limits = case.fact::<Limits>()?;
    let full = |used: Option<f64>| used.is_some_and(|u| u >= FULL);
    let by_itself = limits.target_share.is_none_or(|part| part >= 0.5);
    Ok(full(limits.allowed_cpus) && by_itself || full(limits.quota))
}

fn finding(case: &Case, collector: &Collector, (part, paused): (f64, f64), ledger: &Threads) -> Finding {
    let meta = &case.recording.meta.target;
    let spent = part * ledger.total.cpu_ns / 1e9;
    Finding {
        summary: format!(
            "The garbage collector of {} takes {} of the on-CPU time, {} in the window; for {} of the on-CPU time the program \
             stood still or did the collector's work",
            collector.runtime,
            percent(part),
            seconds(spent),
            percent(paused)
        ),
        subject: Subject { pid: meta.pids.first().copied(), comm: Some(meta.comm.clone()), ..Subject::default() },
        explains: Explains { share: part, of: "on-CPU time".into(), seconds: spent },
        evidence: vec![
            evidence("samples inside the garbage collector", part, "share", "under a tenth", ""),
            evidence("of all, with the program stopped or helping", paused, "share", "near 0", ""),
            evidence("CPU time of the target", ledger.total.cpu_ns / 1e9, "s", "", ""),
        ],
        remedy: format!(
            "Make it collect less often: {}. Allocating less in each request and keeping fewer objects that hold pointers \
             takes the work away instead of putting it off.",
            collector.less_often
        ),
        check: "After the change the same diagnosis shows a small share of samples inside the collector.".into(),
        ..RULE.finding(case, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    fn text(marking: u32, working: u32) -> String {
        entered("runtime.gcAssistAlloc", marking, working)
    }

    fn entered(by: &str, marking: u32, working: u32) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1] target.comm=svc target.sample_hz=100
             frame id=1 symbol=runtime.scanobject module=svc kind=native
             frame id=2 symbol={by} module=svc kind=native
             frame id=3 symbol=main.handle module=svc kind=native
             stack id=1 frames=[1,2] complete=true
             stack id=2 frames=[3] complete=true
             thread pid=1 tid=1 comm=svc wall_ns=1e9 cpu_ns=9e8 blocked_ns=1e8
             sample pid=1 tid=1 comm=svc stack=1 weight={marking}
             sample pid=1 tid=1 comm=svc stack=2 weight={working}"
        )
    }

    #[test]
    fn a_collector_that_takes_half() {
        let finding = found(&RULE, &text(50, 50));
        assert!(finding.summary.contains("of Go takes 50 %"), "{}", finding.summary);
    }

    #[test]
    fn a_collector_on_cpus_that_nobody_wants() {
        let idle = entered("runtime.gcBgMarkWorker", 50, 50);
        assert!(silent(&RULE, &idle).contains("beside the program"));
        // The same where requests want them.
        let full = "meta target.allowed_cpus=[0]
            counter source=proc/stat entity=cpu0 name=user_ns value=0\ncounter source=proc/stat entity=cpu0 name=idle_ns value=0
            counter t_ns=1e9 source=proc/stat entity=cpu0 name=user_ns value=97e7
            counter t_ns=1e9 source=proc/stat entity=cpu0 name=idle_ns value=3e7\n";
        found(&RULE, &(entered("runtime.gcBgMarkWorker", 50, 50) + "\n" + full));
        // Full with the work of others.
        let little = entered("runtime.gcBgMarkWorker", 50, 50)
            .replace("cpu_ns=9e8 blocked_ns=1e8", "cpu_ns=2e8 run_queue_ns=8e8");
        silent(&RULE, &(little + "\n" + full));
    }

    #[test]
    fn a_collector_of_a_healthy_heap() {
        assert!(silent(&RULE, &text(8, 92)).contains("8.0 %"));
    }
}
