// SPDX-License-Identifier: Apache-2.0
//! Signals that end it: a terminal that is gone, a second Ctrl-C, and what becomes of a command that it has started.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use testing::need;

use crate::tool::{Running, WAKEWALK, kernel_allows, poll, send, sentence, server, text};

/// SIGINT among the signals of a mask in `/proc/PID/status`.
const SIGINT: u64 = 1 << 1;

/// Waits until a process catches SIGINT: then all that it catches is caught.
fn until_it_hears(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    poll("process that hears signals", || {
        let text = text(Path::new(&status));
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        (u64::from_str_radix(caught.trim(), 16).unwrap() & SIGINT != 0).then_some(())
    });
}

/// A load that gets a hangup in its second second, started with SIGHUP as `env` is told; why its numbers are what they are.
fn hung_up(started: &str, length: &str) -> String {
    let server = server();
    let load = ["load", &server, "--rate", "50", "--for", length, "--new-connections", "--json"];
    let mut command = Command::new("env");
    command.args([started, WAKEWALK]).args(load).stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_it_hears(&child);
    sleep(Duration::from_secs(1));
    send("HUP", child.id());
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(answer["answered"].as_u64().unwrap() > 0, "{answer}");
    answer["reasons"].to_string()
}

#[test]
fn a_terminal_that_is_gone_ends_it_but_for_who_said_otherwise() {
    let reasons = hung_up("--default-signal=HUP", "300s");
    assert!(reasons.contains("ended-early"), "{reasons}");
    let reasons = hung_up("--ignore-signal=HUP", "3s");
    assert!(!reasons.contains("ended-early"), "nohup: {reasons}");
}

/// Folders of recordings with a slice.
fn recordings(place: &Path) -> usize {
    let folders = fs::read_dir(place).unwrap().flatten();
    folders.filter(|folder| !text(&folder.path().join("meta.json")).is_empty() && has_slice(&folder.path())).count()
}

fn has_slice(folder: &Path) -> bool {
    fs::metadata(folder.join("thread.arrows")).is_ok_and(|file| file.len() > 0)
}

#[test]
fn a_second_signal_ends_a_capture_at_once_and_says_so() {
    need!(kernel_allows());
    for is_kept in [true, false] {
        let (target, place) = (Running::sleep(), tempfile::tempdir().unwrap());
        let mut command = Command::new(WAKEWALK);
        command.args(["diagnose", "--for", "300s", "--pid", &target.pid()]).env("TMPDIR", place.path());
        if is_kept {
            command.arg("--save").arg(place.path().join("kept"));
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        poll("slice", || (recordings(place.path()) == 1).then_some(()));
        sleep(Duration::from_millis(300)); // not while its files are made
        // Held still, so that it hears both of them at once, and has not come to its end in between.
        ["STOP", "INT", "TERM", "CONT"].iter().for_each(|signal| send(signal, child.id()));
        let said = sentence(&child.wait_with_output().unwrap());
        assert!(said.contains("at the second signal") && said.contains("the kernel takes all hooks off"), "{said}");
        assert_eq!(said.contains("kept in `"), is_kept, "{said}");
        assert_eq!(recordings(place.path()), usize::from(is_kept));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), usize::from(is_kept), "nothing else is left");
    }
}

#[test]
fn a_command_does_not_outlive_who_was_to_end_it() {
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    fs::write(&go, ".").unwrap();
    let script = "\"$0\" await -- sleep 600 <\"$1\" & echo $!; wait";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, WAKEWALK]).arg(&go).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut shell = shell.spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    poll("command", || text(Path::new(&stat)).contains("(sleep)").then_some(()));
    shell.kill().unwrap();
    shell.wait().unwrap();
    until_it_has_ended(&stat);
}

/// Nobody may be there to take note of its end.
fn until_it_has_ended(stat: &str) {
    let has_ended = |stat: &str| stat.is_empty() || stat.contains(") Z");
    poll("end of the command", || has_ended(&text(Path::new(stat))).then_some(()));
}

#[test]
fn what_a_command_has_started_ends_at_a_second_signal_too() {
    need!(kernel_allows());
    let place = tempfile::tempdir().unwrap();
    let pid = place.path().join("pid");
    let script = "sleep 600 & echo $! >\"$0\"; wait";
    let mut command = Command::new(WAKEWALK);
    command.args(["diagnose", "--for", "300s", "--", "sh", "-c", script]).arg(&pid).env("TMPDIR", place.path());
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stat = poll("command", || Some(text(&pid)).filter(|pid| pid.ends_with('\n')));
    let stat = format!("/proc/{}/stat", stat.trim());
    poll("program of the command", || text(Path::new(&stat)).contains("(sleep)").then_some(()));
    ["STOP", "INT", "TERM", "CONT"].iter().for_each(|signal| send(signal, child.id()));
    let said = sentence(&child.wait_with_output().unwrap());
    assert!(said.contains("at the second signal"), "{said}");
    until_it_has_ended(&stat);
}
