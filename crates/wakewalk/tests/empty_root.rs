// SPDX-License-Identifier: Apache-2.0
//! The binary needs nothing of the system but the kernel: it is static, and works in a root directory that holds
//! /proc, /sys and itself.

#![allow(clippy::unwrap_used)]

mod programs;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use diagnose::verdict::Verdict;
use testing::{given, need};

const WAKEWALK: &str = env!("CARGO_BIN_EXE_wakewalk");

/// Runs wakewalk in a root of its own; fails where that is not allowed.
fn in_empty_root(root: &Path, args: &[&str]) -> Result<Output, String> {
    let enter = "mount -t proc proc \"$0/proc\" && mount --rbind /sys \"$0/sys\" || exit 77; exec chroot \"$0\" /wakewalk \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", enter]).arg(root).args(args).stdin(Stdio::null()).env_remove("TMPDIR");
    let out = command.output().unwrap();
    let refused = out.status.code() == Some(77) || String::from_utf8_lossy(&out.stderr).contains("unshare failed");
    if refused {
        return Err(format!("no root of its own: {}", String::from_utf8_lossy(&out.stderr)));
    }
    Ok(out)
}

fn empty_root() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for mount in ["proc", "sys"] {
        fs::create_dir(root.path().join(mount)).unwrap();
    }
    programs::copy(WAKEWALK, root.path().join("wakewalk"));
    root
}

fn succeeded(out: &Output) -> String {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout.clone()).unwrap()
}

#[test]
fn the_binary_is_static() {
    let out = Command::new("ldd").arg(WAKEWALK).output().unwrap();
    let said = [out.stdout, out.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("statically linked") || said.contains("not a dynamic executable"), "{said}");
}

#[test]
fn what_needs_no_target() {
    let root = empty_root();
    let recording = root.path().join("recording");
    fs::create_dir(&recording).unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/fixtures/busy-poll/recording");
    for file in fs::read_dir(fixture).unwrap().flatten() {
        fs::copy(file.path(), recording.join(file.file_name())).unwrap();
    }
    let explained = need!(in_empty_root(root.path(), &["explain", "busy-poll"]));
    assert!(succeeded(&explained).contains("busy-poll"));
    for args in [&["diagnose", "--from", "/recording"][..], &["doctor"], &["--for", "1s"]] {
        let out = in_empty_root(root.path(), args).unwrap();
        assert!(!succeeded(&out).is_empty(), "{args:?}");
    }
}

#[test]
fn a_process_and_a_command() {
    let root = empty_root();
    let doctor = need!(in_empty_root(root.path(), &["doctor", "--json"]));
    let health: serde_json::Value = serde_json::from_str(&succeeded(&doctor)).unwrap();
    need!(given(health["bpf"] == true, "wakewalk doctor says that BPF cannot be used here"));
    let mut target = Command::new("sleep").arg("300").spawn().unwrap();
    let pid = target.id();
    let by_pid = in_empty_root(root.path(), &["diagnose", "--json", "--for", "1s", "--pid", &pid.to_string()]);
    target.kill().unwrap();
    target.wait().unwrap();
    let by_pid: Verdict = serde_json::from_str(&succeeded(&by_pid.unwrap())).unwrap();
    assert_eq!((by_pid.target.pids, by_pid.verdict.as_str()), (vec![pid], "healthy"));
    // There is nothing to start but itself.
    let own = ["diagnose", "--json", "--for", "1s", "--", "/wakewalk", "--for", "30s"];
    let started: Verdict = serde_json::from_str(&succeeded(&in_empty_root(root.path(), &own).unwrap())).unwrap();
    assert_eq!(started.target.comm, "wakewalk");
    assert!(started.coverage.thread_time > 0.98, "{:?}", started.coverage);
    let left: Vec<_> = fs::read_dir(root.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 3, "nothing is left in the root: {left:?}");
}
