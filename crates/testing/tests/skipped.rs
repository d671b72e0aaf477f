// SPDX-License-Identifier: Apache-2.0
//! A test that lacks something, as the harness runs it: shown although output is captured, noted, and failed in CI.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

use wakewalk_testing::{SKIPS, given, need, need_of_host};

const ROLE: &str = "WAKEWALK_TEST_ROLE";

#[test]
#[ignore = "not a test: what the others run"]
fn lacks() {
    need!(given(std::env::var(ROLE).is_ok_and(|role| role != "lacks"), "nothing\nis there"));
}

#[test]
#[ignore = "not a test: what the others run"]
fn host_lacks() {
    need_of_host!(Err::<(), _>("no such host"));
}

/// Runs one of the two, and returns what was noted besides.
fn run(test: &str, role: &str, ci: &str) -> (Output, String) {
    let dir = tempfile::tempdir().unwrap();
    let skips = dir.path().join("skips");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored"]).env(ROLE, role).env("CI", ci).env(SKIPS, &skips);
    let out = command.output().unwrap();
    (out, std::fs::read_to_string(skips).unwrap_or_default())
}

#[test]
fn a_skip_is_shown_and_noted() {
    let (out, noted) = run("lacks", "lacks", "");
    assert!(out.status.success());
    assert!(noted.contains("crates/testing/tests/skipped.rs:") && noted.ends_with(": nothing is there\n"), "{noted}");
    assert!(noted.starts_with("SKIPPED ") && noted.lines().count() == 1, "{noted}");
    assert_eq!(String::from_utf8(out.stderr).unwrap(), noted, "past the harness, which captures");
}

#[test]
fn in_ci_a_skip_fails() {
    let (out, noted) = run("lacks", "lacks", "true");
    assert!(!out.status.success() && noted.is_empty());
    assert!(String::from_utf8_lossy(&out.stdout).contains("In CI this has to be there"), "{out:?}");
}

#[test]
fn what_hosts_may_lack_is_skipped_in_ci_too() {
    let (out, noted) = run("host_lacks", "", "true");
    assert!(out.status.success() && noted.contains("no such host"), "{noted}");
}

#[test]
fn what_is_there_is_not_noted() {
    let (out, noted) = run("lacks", "has", "true");
    assert!(out.status.success() && noted.is_empty(), "{noted}");
}
