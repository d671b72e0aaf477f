// SPDX-License-Identifier: Apache-2.0
//! `wakewalk diff` and `diagnose --baseline` as a user runs them: on the golden recordings, which need no
//! privilege, and on a capture made here for the inventory.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use diagnose::comparison::result::Comparison;
use diagnose::verdict::Verdict;
use recording::tables::{Counter, Setting};
use testing::{given, need};

const WAKEWALK: &str = env!("CARGO_BIN_EXE_wakewalk");

fn wakewalk(args: &[&str]) -> Output {
    Command::new(WAKEWALK).args(args).stdin(Stdio::null()).output().unwrap()
}

/// A golden recording.
fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/fixtures").join(name).join("recording");
    path.canonicalize().unwrap().display().to_string()
}

fn answered(args: &[&str]) -> Vec<u8> {
    let out = wakewalk(args);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

fn compared(args: &[&str]) -> Comparison {
    serde_json::from_slice(&answered(&[&["diff", "--json"], args].concat())).unwrap()
}

fn refused(args: &[&str]) -> String {
    let out = wakewalk(args);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
    assert!(!said.contains("panicked") && out.stdout.is_empty(), "{said}");
    said
}

#[test]
fn the_fix_of_a_busy_poll_is_seen_at_the_same_load() {
    let (fault, fixed) = (golden("busy-poll"), golden("busy-poll-twin"));
    let c = compared(&[&fault, &fixed]);
    assert_eq!((c.verdict.as_str(), c.operation.id.as_str()), ("changed", "data-segments"));
    let difference = |id: &str| c.measures.iter().find(|m| m.id == id).unwrap().difference;
    assert!(difference("cpu").changed && difference("cpu").change.unwrap() < -0.9);
    assert!(!difference("operations").changed, "the service rate is unhurt");
    let polls = difference("polls_per_useful_event");
    assert!(polls.a > 1000.0 && polls.b < 50.0, "{polls:?}");
    let text = String::from_utf8(answered(&["diff", &fault, &fixed])).unwrap();
    let answer = text.split("\n\n").next().unwrap();
    assert!(answer.starts_with("What  changed: CPU time per TCP data segment fell by 9"), "{answer}");
    assert!(answer.contains("\nLoad  the same") && answer.contains("\nElse  "), "{answer}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let fault = golden("busy-poll");
    let c = compared(&[&fault, &fault]);
    assert_eq!(c.verdict, "no-difference", "{}", c.headline);
    assert_eq!(answered(&["diff", &fault, &fault, "--json"]), answered(&["diff", &fault, &fault, "--json"]));
}

#[test]
fn the_page_is_written_and_whole() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    answered(&["diff", &golden("busy-poll"), &golden("busy-poll-twin"), "--html", page.to_str().unwrap()]);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.ends_with("</html>\n") && page.contains("compared-flame"));
}

#[test]
fn mistakes_get_a_sentence_and_exit_code_2() {
    let fault = golden("busy-poll");
    assert!(refused(&["diff", &fault, "/no/such/folder"]).contains("holds no recording"));
    assert!(refused(&["diff", &fault]).contains("<B>"));
    assert!(refused(&["diff", &fault, "--a", "0s..2s", "--b", "2s..4s"]).contains("time slices"));
    assert!(refused(&["diff", &fault, "--a", "0s..4s", "--b", "90s..99s"]).contains("s long"));
    assert!(refused(&["diff", &fault, "--a", "4s", "--b", "2s..4s"]).contains("FROM..TO"));
    assert!(refused(&["diff", &fault, &fault, "--html", "/no/such/folder/x.html"]).contains("folder that exists"));
    assert!(refused(&["diagnose", "--from", &fault, "--baseline", "/no/such/folder"]).contains("holds no recording"));
}

#[test]
fn a_verdict_with_a_baseline_has_the_comparison() {
    let (fault, fixed) = (golden("busy-poll"), golden("busy-poll-twin"));
    let json = answered(&["diagnose", "--json", "--from", &fault, "--baseline", &fixed]);
    let v: Verdict = serde_json::from_slice(&json).unwrap();
    assert_eq!(v.verdict, "busy-poll");
    let baseline = v.symptom.baseline.unwrap();
    assert!(v.symptom.value > 0.9 && baseline < 0.1, "{} {baseline}", v.symptom.value);
    assert_eq!(v.comparison.unwrap().verdict, "changed");
    let text = String::from_utf8(answered(&["diagnose", "--from", &fault, "--baseline", &fixed])).unwrap();
    assert!(text.contains("Before and after") && text.contains("Against "), "{text}");
    let plain: Verdict = serde_json::from_slice(&answered(&["diagnose", "--json", "--from", &fault])).unwrap();
    assert!(plain.comparison.is_none() && plain.symptom.baseline.is_none());
}

#[test]
fn a_capture_records_the_inventory_and_two_parts_of_it_compare() {
    let health: serde_json::Value = serde_json::from_slice(&wakewalk(&["doctor", "--json"]).stdout).unwrap();
    need!(given(health["bpf"] == true, "wakewalk doctor says that BPF cannot be used here"));
    let dir = tempfile::tempdir().unwrap();
    let save = dir.path().join("run").display().to_string();
    // Writes at every round, so that there is a count of work.
    let busy = "while :; do echo x; done > /dev/null";
    answered(&["diagnose", "--json", "--for", "9s", "--save", &save, "--", "sh", "-c", busy]);
    let recording = recording::open(Path::new(&save)).unwrap();
    let settings = recording.rows::<Setting>();
    let value = |area: &str, name: &str| settings.iter().find(|s| s.area == area && s.name == name).map(|s| &s.value);
    assert!(value("sysctl", "net.core.somaxconn").is_some() && value("host", "kernel_build").is_some());
    assert!(value("file", "build_id").is_some_and(|id| id.len() >= 16), "{settings:?}");
    assert!(value("process", "command_line").is_some_and(|c| c.contains("echo x")), "of what it became");
    assert!(recording.rows::<Counter>().iter().any(|c| c.name == "write_calls" && c.value > 0.0));
    let halves = [&save, "--a", "0s..4.5s", "--b", "4.5s.."];
    let mut c = compared(&halves);
    if c.operation.why.contains("disagree") {
        // Others talk in this network namespace; then it says so and wants to be told.
        c = compared(&[&halves[..], &["--per", "write-calls"]].concat());
    }
    assert_eq!((c.operation.id.as_str(), c.statistics.between_runs), ("write-calls", 0.0));
    assert!(c.inventory.is_empty(), "{:?}", c.inventory);
}
