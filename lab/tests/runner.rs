// SPDX-License-Identifier: Apache-2.0
//! The runner itself, against a stand-in for wakewalk that prints the verdict it is told to: are
//! right and wrong verdicts told apart, and is nothing left behind however it ends?
//!
//! These need root, as the lab does; elsewhere they are skipped.

#![allow(clippy::unwrap_used)]

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use testing::{given, need};

const SCENARIO: &str = "poll-with-work";

/// A wakewalk whose answer is known: a sentence and exit 2 for `refuse`, else the verdict.
fn stand_in(dir: &Path, answer: &str, seconds: u32) -> PathBuf {
    let verdict = serde_json::json!({
        "schema": 1, "tool": "stand-in", "host": {"name": "", "kernel": "", "cpus": 2, "virtualization": ""},
        "target": {"named": "", "pids": [], "comm": "", "listen": []},
        "window": {"start": "", "seconds": 1.0, "ended": "time"},
        "symptom": {"kind": "cpu", "value": 0.0, "unit": "cores", "baseline": null, "source": ""},
        "verdict": answer, "headline": "", "advice": "", "findings": [], "ruled_out": [], "gaps": [],
        "ledger": {"threads": {}, "connections": {}},
        "coverage": {"thread_time": 1.0, "cpu_time": 1.0, "blocked_time": 1.0, "events_lost": 0},
        "cost": {"cpu_seconds": 0.0, "share_of_machine": 0.0, "peak_rss_bytes": 0,
                 "kernel_map_bytes": 0, "call_window_share": 0.0}
    });
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = doctor ] && {{ echo '{{\"bpf\": {}}}'; exit 0; }}\n\
         touch {}/started\nsleep {seconds}\n[ {answer} = refuse ] && {{ echo 'no such service' >&2; exit 2; }}\n\
         echo '{verdict}'\n",
        answer != "no-bpf",
        dir.display()
    );
    let path = dir.join("wakewalk");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn lab(dir: &Path, answer: &str, seconds: u32) -> Command {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_lab"));
    lab.args(["run", SCENARIO, "--attempts", "1", "--for", "1", "--wakewalk"]).arg(stand_in(dir, answer, seconds));
    // What it builds and leaves goes to the test's own folder.
    lab.env("CARGO_TARGET_DIR", dir).env_remove("CI").current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    lab
}

fn run(answer: &str) -> Result<(Output, serde_json::Value), &'static str> {
    let dir = folder()?;
    let output = lab(dir.path(), answer, 0).output().unwrap();
    let score = fs::read_to_string(dir.path().join("lab/score.json")).unwrap();
    Ok((output, serde_json::from_str(&score).unwrap()))
}

fn folder() -> Result<tempfile::TempDir, &'static str> {
    given(geteuid().is_root(), "the lab needs root")?;
    Ok(tempfile::tempdir().unwrap())
}

/// Processes and folders of the cell that a runner with this process id had opened.
fn left_behind(runner: u32) -> Vec<String> {
    let cell = format!("wakewalk-lab.{runner}.");
    let mut left = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let cgroup = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
        if cgroup.contains(&cell) {
            left.push(format!("{}: {cgroup}", entry.path().display()));
        }
    }
    let folders = fs::read_dir(env::temp_dir()).unwrap().flatten().map(|e| e.file_name().into_string().unwrap());
    left.extend(folders.filter(|name| name.starts_with(&cell)));
    left
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "still not so after 60 s: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A runner whose wakewalk is at work, and so everything of the cell is.
fn busy_runner(dir: &Path) -> Child {
    let child = lab(dir, "healthy", 60).stdout(Stdio::null()).spawn().unwrap();
    until("wakewalk was started", || dir.join("started").exists());
    assert!(!left_behind(child.id()).is_empty(), "the cell has nothing that could be left behind");
    child
}

#[test]
fn a_right_verdict_passes() {
    let (output, score) = need!(run("healthy"));
    assert!(output.status.success(), "{output:?}");
    assert_eq!((&score["passed"], &score["failed"]), (&1.into(), &0.into()));
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("1 passed, 0 failed, 0 skipped\n"));
}

#[test]
fn a_wrong_verdict_fails_with_its_reason() {
    let (output, score) = need!(run("hot-code"));
    // Although the other tests may have disturbed it.
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(score["rows"][0]["fault"]["objection"], "expected healthy or at-capacity, the verdict is hot-code");
}

#[test]
fn a_refused_diagnosis_fails_with_wakewalks_own_sentence() {
    let (output, score) = need!(run("refuse"));
    assert_eq!(output.status.code(), Some(1));
    assert!(score["rows"][0]["fault"]["objection"].as_str().unwrap().contains("no such service"));
}

#[test]
fn a_kernel_that_refuses_bpf_is_skipped_and_counted() {
    let (output, score) = need!(run("no-bpf"));
    assert!(output.status.success());
    assert_eq!((&score["passed"], &score["skipped"]), (&0.into(), &1.into()));
    assert!(String::from_utf8_lossy(&output.stdout).contains("SKIPPED"));
}

#[test]
fn in_ci_a_kernel_that_refuses_bpf_is_an_error() {
    let dir = need!(folder());
    let output = lab(dir.path(), "no-bpf", 0).env("CI", "true").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("in CI the lab needs a kernel"), "{output:?}");
}

#[test]
fn nothing_is_left_after_an_interrupt() {
    let dir = need!(folder());
    let mut runner = busy_runner(dir.path());
    kill(Pid::from_raw(runner.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(runner.wait().unwrap().code(), Some(2));
    assert_eq!(left_behind(runner.id()), [""; 0]);
}

#[test]
fn nothing_is_left_after_a_kill() {
    let dir = need!(folder());
    let mut runner = busy_runner(dir.path());
    runner.kill().unwrap();
    let id = runner.id();
    runner.wait().unwrap();
    until("the keeper has cleaned up", || left_behind(id).is_empty());
}
