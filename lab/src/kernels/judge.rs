// SPDX-License-Identifier: Apache-2.0
//! What a guest's steps should have given. Counts, shares and causes only: an emulated CPU has no speed.

use diagnose::verdict::{Finding, Verdict};

use super::guest::Results;

/// Facilities that every kernel which is tried must have. Others may be missing on one, which is no failure: the steps below tell what
/// came of it.
const PROBES: [&str; 4] = ["thread ledger", "on-CPU profile", "counted system calls", "run statistics of programs"];

/// Share of thread time that the ledger must account for.
const MIN_COVERAGE: f64 = 0.98;

/// What a step observes, and what must come out.
struct Step {
    name: &'static str,
    about: &'static str,
    cause: &'static str,
    subject: fn(&Finding) -> bool,
}

const STEPS: [Step; 3] = [
    Step {
        name: "busy-poll",
        about: "a thread that polls with timeout 0",
        cause: "busy-poll",
        subject: |f| f.subject.comm.as_deref() == Some("poller"),
    },
    Step {
        name: "spinner",
        about: "a loop with a quota of 0.3 CPUs in cgroup v2",
        cause: "cpu-throttled",
        subject: |f| f.subject.cgroup.as_deref() == Some("/spinner"),
    },
    Step {
        name: "bursts",
        about: "threads that are woken while their quota holds them",
        cause: "cpu-throttled",
        subject: |f| f.subject.cgroup.as_deref() == Some("/bursts"),
    },
];

/// Each check, with the objection where it failed.
pub fn checks(results: &Results) -> Vec<(String, Option<String>)> {
    let mut all = vec![("doctor: each probe loads, the rest works or is explained".to_string(), doctor(results))];
    all.extend(STEPS.iter().map(|step| (format!("{}: {}", step.cause, step.about), diagnosed(step, results))));
    all
}

fn doctor(results: &Results) -> Option<String> {
    let Ok(health) = serde_json::from_str::<serde_json::Value>(&results.text("doctor.json.out")) else {
        return Some(unreached(results, "doctor.json"));
    };
    let facilities = health["facilities"].as_array().map(Vec::as_slice).unwrap_or_default();
    let works = |name: &str| facilities.iter().any(|f| f["name"] == name && f["works"] == true);
    if let Some(refused) = PROBES.iter().find(|name| !works(name)) {
        let why = facilities.iter().find(|f| f["name"] == **refused).map_or("", |f| f["why"].as_str().unwrap_or(""));
        return Some(format!("`{refused}` does not work: {why}"));
    }
    let silent = |f: &&serde_json::Value| f["works"] != true && (f["why"] == "" || f["meaning"] == "");
    facilities.iter().find(silent).map(|f| format!("{} is missing without a word", f["name"]))
}

fn diagnosed(step: &Step, results: &Results) -> Option<String> {
    let said = results.text(&format!("{}.err", step.name));
    let Ok(verdict) = serde_json::from_str::<Verdict>(&results.text(&format!("{}.out", step.name))) else {
        return Some(format!("{}\n{said}", unreached(results, step.name)));
    };
    if said.contains("libbpf") {
        return Some(format!("noise on standard error: {said}"));
    }
    if verdict.verdict != step.cause {
        return Some(format!("the verdict is {}: {}", verdict.verdict, verdict.headline));
    }
    if !verdict.findings.first().is_some_and(step.subject) {
        return Some(format!("the wrong subject: {:?}", verdict.findings.first().map(|f| &f.subject)));
    }
    let covered = verdict.coverage.thread_time;
    if covered < MIN_COVERAGE {
        return Some(format!("only {covered:.3} of thread time is accounted for"));
    }
    let line = |name: &str| verdict.ledger.threads.get(name).copied().unwrap_or(0.0);
    let (held, queued) = (line("throttled"), line("run_queue"));
    // Most of the time that threads wait in a group whose quota is used up, the quota holds them.
    let confused = step.cause == "cpu-throttled" && held < 2.0 * queued;
    confused.then(|| format!("throttled for {held:.1} s, and waiting for a CPU for {queued:.1} s"))
}

fn unreached(results: &Results, step: &str) -> String {
    let code = results.text(&format!("{step}.code"));
    match code.trim() {
        "" => format!("the guest did not get that far; it said last:\n{}", results.console),
        code => format!("no answer, exit code {code}"),
    }
}
