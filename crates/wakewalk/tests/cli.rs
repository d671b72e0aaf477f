// SPDX-License-Identifier: Apache-2.0
//! The command as a user runs it: exit codes, sentences, targets of every kind, targets that end.
//! Tests that need BPF are skipped only where a probe load shows that the kernel refuses it.

#![allow(clippy::unwrap_used)]

mod programs;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use diagnose::verdict::Verdict;
use testing::{given, need, need_of_host};

const WAKEWALK: &str = env!("CARGO_BIN_EXE_wakewalk");

fn wakewalk(args: &[&str]) -> Output {
    Command::new(WAKEWALK).args(args).stdin(Stdio::null()).output().unwrap()
}

/// Runs and expects exit code 2; returns the sentence.
fn refused(args: &[&str]) -> String {
    let out = wakewalk(args);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
    assert!(said.starts_with("wakewalk: ") && !said.contains("panicked"), "{said}");
    assert!(out.stdout.is_empty(), "nothing on standard output but an answer");
    said
}

/// Runs with --json and expects a verdict.
fn verdict(args: &[&str]) -> Verdict {
    let mut all = vec!["diagnose", "--json"];
    all.extend(args);
    let out = wakewalk(&all);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn kernel_allows() -> Result<(), &'static str> {
    let out = wakewalk(&["doctor", "--json"]);
    let health: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    given(health["bpf"] == true, "wakewalk doctor says that BPF cannot be used here")
}

/// A child that ends with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn sleep() -> Self {
        Self::start(Command::new("sleep").arg("120"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn mistakes_get_a_sentence_and_exit_code_2() {
    let not_running = {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id().to_string()
    };
    assert!(refused(&["diagnose", "--pid", &not_running]).contains(&not_running));
    assert!(refused(&["diagnose", "--comm", "no-such-name-here"]).contains("no process is called"));
    assert!(refused(&["diagnose", "--unit", "no-such-unit"]).contains("no-such-unit"));
    assert!(refused(&["diagnose", "--cgroup", "/no/such/group"]).contains("/no/such/group"));
    assert!(refused(&["diagnose", "--from", "/no/such/folder"]).contains("holds no recording"));
    assert!(refused(&["diagnose", "--pid", "1", "--for", "1ms"]).contains("--for"));
    assert!(refused(&["diagnose", "--for", "1s", "--", "/no/such/program"]).contains("/no/such/program"));
    assert!(refused(&["diagnose", "--pid", "1", "--html", "/no/such/folder/page.html"]).contains("folder that exists"));
    assert!(refused(&["explain", "no-such-cause"]).contains("busy-poll"), "the known ones are named");
}

#[test]
fn a_port_nobody_listens_on() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    assert!(refused(&["diagnose", "--port", &port]).contains(&port));
}

#[test]
fn a_kernel_thread() {
    let seen = fs::read_to_string("/proc/2/comm").is_ok_and(|comm| comm.trim() == "kthreadd");
    need_of_host!(given(seen, "the kernel's threads are not in this process namespace"));
    assert!(refused(&["diagnose", "--pid", "2"]).contains("kernel thread"));
}

#[test]
fn without_privileges_it_says_which_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = dir.path().join("wakewalk");
    programs::copy(WAKEWALK, &copy);
    let out = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&copy)
        .args(["diagnose", "--pid", "1"])
        .output();
    let out = need!(out);
    let said = String::from_utf8(out.stderr).unwrap();
    need!(given(!said.contains("setpriv:"), "not root, so already without privileges"));
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("CAP_BPF") && said.contains("sudo") && said.contains("--from"), "{said}");
}

#[test]
fn explain_knows_every_cause() {
    let list = String::from_utf8(wakewalk(&["explain"]).stdout).unwrap();
    for cause in ["busy-poll", "hot-code", "run-queue-wait", "cpu-throttled", "cpu-steal", "at-capacity", "healthy"] {
        assert!(list.contains(cause) && !list.contains('…'), "nothing is cut for who reads a pipe: {list}");
        assert!(wakewalk(&["explain", cause]).status.success());
    }
    let words = String::from_utf8(wakewalk(&["explain", "words"]).stdout).unwrap();
    assert!(words.contains("active time\n    Thread time without waiting for work"), "{words}");
}

#[test]
fn a_saved_recording_replays_to_the_same_bytes() {
    need!(kernel_allows());
    let dir = tempfile::tempdir().unwrap();
    let (saved, page) = (dir.path().join("recording"), dir.path().join("page.html"));
    let target = Running::sleep();
    let args = ["diagnose", "--pid", &target.pid(), "--for", "1s", "--json", "--save", saved.to_str().unwrap()];
    let live = wakewalk(&[&args[..], &["--html", page.to_str().unwrap()]].concat());
    assert!(live.status.success(), "{}", String::from_utf8_lossy(&live.stderr));
    let replay = wakewalk(&["diagnose", "--from", saved.to_str().unwrap(), "--json"]);
    assert!(live.stdout == replay.stdout, "the same recording gives the same bytes");
    assert!(fs::read_to_string(&page).unwrap().contains("</html>"));
    let again = refused(&["diagnose", "--pid", &target.pid(), "--save", saved.to_str().unwrap()]);
    assert!(again.contains("already holds a recording"), "{again}");
    let part = verdict(&["--from", saved.to_str().unwrap(), "--at", "0s..1s"]);
    assert!(part.window.seconds > 0.5 && !part.headline.is_empty(), "{part:?}");
    assert!(
        refused(&["diagnose", "--from", saved.to_str().unwrap(), "--at", "7s..9s"]).contains("nothing between 7.0 s")
    );
    assert!(refused(&["diagnose", "--pid", "1", "--at", "0s..1s"]).contains("--from"));
    let moments = verdict(&["--from", saved.to_str().unwrap(), "--every", "1s"]).timeline;
    assert!(moments.first().is_some_and(|first| first.from == 0.0 && first.to > 0.5), "{moments:?}");
    assert!(refused(&["diagnose", "--from", saved.to_str().unwrap(), "--every", "1ms"]).contains("take 1s or more"));
}

#[test]
fn targets_of_every_kind() {
    need!(kernel_allows());
    let name = format!("ww{}", std::process::id());
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join(&name);
    programs::copy("/bin/sleep", &program);
    let named = Running::start(Command::new(&program).arg("120"));
    sleep(Duration::from_millis(200));
    assert_eq!(verdict(&["--comm", &name, "--for", "1s"]).target.pids, [named.0.id()]);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let by_port = verdict(&["--port", &port, "--for", "1s"]);
    assert_eq!(by_port.target.pids.first(), Some(&std::process::id()));
    assert!(by_port.target.listen.contains(&format!("tcp 127.0.0.1:{port}")), "{:?}", by_port.target.listen);

    let started = verdict(&["--for", "1s", "--", "sh", "-c", "while :; do :; done"]);
    assert_eq!((started.target.comm.as_str(), started.target.named.starts_with("-- sh")), ("sh", true));
    assert!(started.symptom.value > 0.05, "the loop used CPU: {:?}", started.symptom);
}

/// A v1 cgroup of the test's own.
struct Cgroup(PathBuf);

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_cgroup_and_a_process_in_other_namespaces() {
    need!(kernel_allows());
    let group = Cgroup(PathBuf::from(format!("/sys/fs/cgroup/cpu/wakewalk-cli-{}.service", std::process::id())));
    need_of_host!(fs::create_dir(&group.0).map_err(|e| format!("no v1 cpu cgroup to be had: {e}")));
    let inside = Running::sleep();
    fs::write(group.0.join("cgroup.procs"), inside.pid()).unwrap();
    let path = group.0.to_str().unwrap();
    assert_eq!(verdict(&["--cgroup", path, "--for", "1s"]).target.pids, [inside.0.id()]);
    let unit = group.0.file_name().unwrap().to_str().unwrap();
    assert_eq!(verdict(&["--unit", unit, "--for", "1s"]).target.pids, [inside.0.id()]);
    drop(inside);

    let container = Running::start(Command::new("unshare").args([
        "--pid",
        "--mount",
        "--net",
        "--fork",
        "--kill-child",
        "sleep",
        "120",
    ]));
    sleep(Duration::from_millis(300));
    let v = verdict(&["--pid", &container.pid(), "--for", "1s"]);
    assert_eq!(v.target.pids.len(), 2, "unshare and its child: {:?}", v.target);
    assert!(v.coverage.thread_time > 0.99, "{:?}", v.coverage);
}

#[test]
fn a_target_that_ends_gives_what_was_seen() {
    need!(kernel_allows());
    let v = verdict(&["--for", "60s", "--", "sleep", "1.5"]);
    assert_eq!(v.window.ended, "target exited");
    assert!(v.window.seconds < 30.0, "{:?}", v.window);
}

#[test]
fn an_idle_target_is_healthy_and_a_full_folder_is_refused() {
    need!(kernel_allows());
    let idle = Running::sleep();
    assert_eq!(verdict(&["--pid", &idle.pid(), "--for", "1"]).verdict, "healthy");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine"), "x").unwrap();
    let said = refused(&["diagnose", "--pid", &idle.pid(), "--for", "1s", "--save", dir.path().to_str().unwrap()]);
    assert!(said.contains("not empty") && dir.path().join("mine").exists(), "{said}");
}

#[test]
fn an_interrupt_gives_what_was_seen() {
    need!(kernel_allows());
    let target = Running::sleep();
    let mut child = Command::new(WAKEWALK)
        .args(["diagnose", "--json", "--for", "300s", "--pid", &target.pid()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    sleep(Duration::from_millis(2500));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it must end when told to");
        sleep(Duration::from_millis(50));
    }
    let out = child.wait_with_output().unwrap();
    let v: Verdict = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((v.window.ended.as_str(), out.status.success()), ("interrupted", true));
}

#[test]
fn names_with_escapes_are_shown_harmlessly() {
    need!(kernel_allows());
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("\u{1b}[2J<b>\n");
    programs::copy("/bin/sleep", &program);
    let hostile = Running::start(Command::new(&program).arg("120"));
    sleep(Duration::from_millis(200));
    let page = dir.path().join("page.html");
    let out = wakewalk(&["diagnose", "--pid", &hostile.pid(), "--for", "1s", "--html", page.to_str().unwrap()]);
    assert!(out.status.success());
    assert!(!out.stdout.contains(&0x1b), "{}", String::from_utf8_lossy(&out.stdout).escape_debug());
    assert!(!fs::read_to_string(&page).unwrap().contains("[2J<b>"));
}

#[test]
fn the_host_is_watched_without_a_target() {
    let out = wakewalk(&["--for", "1s", "--json"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let host: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(host["kind"], "host");
    assert!(!host["resources"].as_array().unwrap().is_empty());
}

#[test]
fn nothing_is_left_in_the_kernel() {
    need!(kernel_allows());
    need!(given(Path::new("/usr/sbin/bpftool").exists(), "no bpftool, so what is left in the kernel cannot be seen"));
    let target = Running::sleep();
    let mut child = Command::new(WAKEWALK)
        .args(["diagnose", "--for", "300s", "--pid", &target.pid()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while programs_of(child.id()).is_empty() && begin.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(100));
    }
    let programs = programs_of(child.id());
    assert!(!programs.is_empty(), "it holds programs while it runs");
    child.kill().unwrap(); // SIGKILL: no chance to clean up
    child.wait().unwrap();
    while programs.iter().any(|id| is_loaded(id)) {
        assert!(begin.elapsed() < Duration::from_secs(60), "programs outlived the process");
        sleep(Duration::from_millis(100));
    }
}

/// Ids of the BPF programs that a process holds descriptors of.
fn programs_of(pid: u32) -> Vec<String> {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return Vec::new() };
    let texts = descriptors.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    texts.filter_map(|t| Some(t.lines().find_map(|l| l.strip_prefix("prog_id:"))?.trim().to_string())).collect()
}

fn is_loaded(id: &str) -> bool {
    let shown = Command::new("/usr/sbin/bpftool").args(["prog", "show", "id", id]).output();
    shown.is_ok_and(|out| out.status.success())
}

#[test]
fn the_readme_names_the_tested_kernels() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let words = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = format!("Tested on: {};", collect::tested_kernels::sentence());
    assert!(words.contains(&sentence), "the README must say: {sentence}");
}
