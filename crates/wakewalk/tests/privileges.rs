// SPDX-License-Identifier: Apache-2.0
//! Least privilege, found by trying: the documented capabilities are enough for each kind of target, and without any
//! one of them the refusal names it. Runs wakewalk as a user who is nobody, with capabilities handed to it one by one.

#![allow(clippy::unwrap_used)]

mod programs;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use diagnose::verdict::Verdict;
use testing::{given, need, need_of_host};

const NOBODY: [&str; 5] = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
/// For a service of one's own, and for one that wakewalk starts itself.
const OWN: [&str; 2] = ["bpf", "perfmon"];
/// For a service of another user.
const OTHERS: [&str; 4] = ["bpf", "perfmon", "sys_ptrace", "dac_read_search"];

/// A copy of wakewalk that anybody may run.
struct Desk(tempfile::TempDir);

impl Desk {
    /// Fails where BPF or the change of user is refused.
    fn new() -> Result<Self, String> {
        let doctor = Command::new(env!("CARGO_BIN_EXE_wakewalk")).args(["doctor", "--json"]).output().unwrap();
        let health: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
        given(health["bpf"] == true, "wakewalk doctor says that BPF cannot be used here")?;
        let desk = Self::without_bpf()?;
        // A user namespace or a seccomp filter may keep even root from handing capabilities on.
        let handed = desk.run(&OTHERS, &["explain"]);
        if !handed.status.success() {
            return Err(format!("setpriv cannot hand capabilities on: {}", String::from_utf8_lossy(&handed.stderr)));
        }
        Ok(desk)
    }

    fn without_bpf() -> Result<Self, String> {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        programs::copy(env!("CARGO_BIN_EXE_wakewalk"), dir.path().join("wakewalk"));
        let nobody = Command::new("setpriv").args(NOBODY).arg("true").status();
        given(nobody.is_ok_and(|status| status.success()), "not root, so no other user can be played")?;
        Ok(Self(dir))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("wakewalk")
    }

    /// Runs wakewalk as nobody with these capabilities and no others.
    fn run(&self, capabilities: &[&str], args: &[&str]) -> Output {
        let all: String = capabilities.iter().map(|c| format!(",+{c}")).collect();
        let mut command = Command::new("setpriv");
        command.args(NOBODY).arg(format!("--inh-caps=-all{all}")).arg(format!("--ambient-caps=-all{all}"));
        command.arg(self.path()).args(args).current_dir("/").stdin(Stdio::null()).output().unwrap()
    }

    fn verdict(&self, capabilities: &[&str], target: &[&str]) -> Verdict {
        let args = [&["diagnose", "--json", "--for", "1s"], target].concat();
        let out = self.run(capabilities, &args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && !said.contains("libbpf"), "{capabilities:?} {target:?}: {said}");
        serde_json::from_slice(&out.stdout).unwrap()
    }

    /// `needed` is enough; without any one of them exit code 2 and a sentence that names it, and no other.
    fn needs_exactly(&self, needed: &[&str], target: &[&str]) -> Verdict {
        for absent in needed {
            let rest: Vec<&str> = needed.iter().copied().filter(|c| c != absent).collect();
            let out = self.run(&rest, &[&["diagnose", "--for", "1s"], target].concat());
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.code(), Some(2), "without {absent}, {target:?}: {said}");
            let named = |c: &str| said.contains(&format!("CAP_{}", c.to_uppercase()));
            assert!(named(absent) && !rest.iter().any(|c| named(c)), "without {absent}, {target:?}: {said}");
            assert!(said.starts_with("wakewalk: ") && said.lines().count() == 1, "one sentence: {said}");
        }
        self.verdict(needed, target)
    }
}

/// A service that ends with the test.
struct Service(Child);

impl Service {
    fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(300)); // until it is what it is to be
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_service_of_ones_own_and_a_command() {
    let desk = need!(Desk::new());
    let own = Service::start(Command::new("setpriv").args(NOBODY).args(["sleep", "300"]));
    let verdict = desk.needs_exactly(&OWN, &["--pid", &own.pid()]);
    assert_eq!(verdict.target.pids, [own.0.id()]);
    // What is missing is said in the verdict, with the capability.
    let gap = |c: &str| verdict.gaps.iter().any(|g| g.why.contains(c));
    assert!(gap("CAP_SYSLOG") && gap("CAP_SYS_ADMIN"), "{:?}", verdict.gaps);
    let started = desk.needs_exactly(&OWN, &["--", "sh", "-c", "while :; do :; done"]);
    assert!(started.symptom.value > 0.05, "the loop used CPU: {:?}", started.symptom);
}

#[test]
fn a_service_of_another_user_by_pid_name_and_port() {
    let desk = need!(Desk::new());
    let name = format!("ww{}", std::process::id());
    let program = desk.0.path().join(&name);
    programs::copy("/bin/sleep", &program);
    let service = Service::start(Command::new(&program).arg("300"));
    assert_eq!(desk.needs_exactly(&OTHERS, &["--pid", &service.pid()]).target.pids, [service.0.id()]);
    assert_eq!(desk.needs_exactly(&OTHERS, &["--comm", &name]).target.pids, [service.0.id()]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let by_port = desk.needs_exactly(&OTHERS, &["--port", &port]);
    assert_eq!(by_port.target.pids.first(), Some(&std::process::id()));
}

#[test]
fn capabilities_of_the_file_work_as_well() {
    let desk = need!(Desk::new());
    let set = Command::new("setcap").arg("cap_bpf,cap_perfmon+ep").arg(desk.path()).status();
    need_of_host!(given(set.is_ok_and(|status| status.success()), "no setcap, or a file system without capabilities"));
    let run = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(NOBODY).arg(desk.path()).args(["diagnose", "--json", "--for", "1s"]).args(args);
        command.current_dir("/").stdin(Stdio::null()).output().unwrap()
    };
    let own = Service::start(Command::new("setpriv").args(NOBODY).args(["sleep", "300"]));
    for target in [&["--pid", &own.pid()][..], &["--", "sleep", "10"]] {
        let out = run(target);
        assert!(out.status.success(), "{target:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
    let others = Service::start(Command::new("sleep").arg("300"));
    let refused = run(&["--pid", &others.pid()]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("CAP_SYS_PTRACE"), "{said}");
}

/// A cgroup of the test's own, version 1 or 2.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new() -> Option<Self> {
        let name = format!("wakewalk-privileges-{}.service", std::process::id());
        ["cpu", "unified", ""]
            .into_iter()
            .map(|tree| Path::new("/sys/fs/cgroup").join(tree).join(&name))
            .find(|dir| {
                dir.parent().is_some_and(|top| top.join("cgroup.procs").exists()) && fs::create_dir(dir).is_ok()
            })
            .map(Self)
    }
}

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
fn a_service_of_another_user_by_cgroup_and_in_another_namespace() {
    let desk = need!(Desk::new());
    let group = need!(Cgroup::new().ok_or("no cgroup to be had"));
    let inside = Service::start(Command::new("sleep").arg("300"));
    fs::write(group.0.join("cgroup.procs"), inside.pid()).unwrap();
    let by_group = desk.needs_exactly(&OTHERS, &["--cgroup", group.0.to_str().unwrap()]);
    assert_eq!(by_group.target.pids, [inside.0.id()]);
    let unit = group.0.file_name().unwrap().to_str().unwrap();
    assert_eq!(desk.needs_exactly(&OTHERS, &["--unit", unit]).target.pids, [inside.0.id()]);
    drop(inside);

    let container = ["--net", "--pid", "--mount", "--fork", "--kill-child", "sleep", "300"];
    let container = Service::start(Command::new("unshare").args(container));
    let verdict = desk.needs_exactly(&OTHERS, &["--pid", &container.pid()]);
    assert_eq!(verdict.target.pids.len(), 2, "unshare and its child: {:?}", verdict.target);
}

#[test]
fn what_needs_no_privilege_at_all() {
    let desk = need!(Desk::without_bpf());
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/fixtures/busy-poll/recording");
    let recording = desk.0.path().join("recording");
    fs::create_dir(&recording).unwrap();
    for file in fs::read_dir(fixture).unwrap().flatten() {
        fs::copy(file.path(), recording.join(file.file_name())).unwrap();
    }
    let from = recording.to_str().unwrap();
    for args in [&["diagnose", "--from", from][..], &["explain", "busy-poll"], &["--for", "1s"], &["doctor"]] {
        let out = desk.run(&[], args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && !said.contains("libbpf") && !said.contains("panicked"), "{args:?}: {said}");
    }
}

#[test]
fn in_a_container_with_process_numbers_of_its_own() {
    let inside = |program: &str, args: &[&str]| {
        let own = ["--pid", "--fork", "--mount-proc", program];
        Command::new("unshare").args(own).args(args).stdin(Stdio::null()).output()
    };
    let can = inside("true", &[]).is_ok_and(|out| out.status.success());
    need!(given(can, "not root, so no process namespace can be made"));
    let wakewalk = |args: &[&str]| inside(env!("CARGO_BIN_EXE_wakewalk"), args).unwrap();
    let started = ["diagnose", "--for", "1s", "--", "sleep", "9"];
    for args in [&["diagnose", "--pid", "1"][..], &started, &["bisect", "--pid", "1"], &["load", "--", "sleep", "9"]] {
        let out = wakewalk(args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{args:?}: {said}");
        assert!(said.contains("--pid=host") && said.contains("hostPID: true") && said.contains("--from"), "{said}");
    }
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/fixtures/busy-poll/recording");
    for args in [&["diagnose", "--from", golden][..], &["--for", "1s"], &["doctor"]] {
        let out = wakewalk(args);
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        assert!(!String::from_utf8_lossy(&out.stdout).contains("`wakewalk diagnose` works here"), "{args:?}");
    }
}

#[test]
fn doctor_says_what_it_could_not_try() {
    let desk = need!(Desk::without_bpf());
    let out = desk.run(&[], &["doctor"]);
    let report = String::from_utf8(out.stdout).unwrap();
    assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(report.contains("could not be tried: run `sudo wakewalk doctor`"), "{report}");
    for name in ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", "CAP_SYSLOG", "CAP_SYS_ADMIN"] {
        assert!(report.contains(name), "{name} is not in\n{report}");
    }
    let out = desk.run(&OWN, &["doctor", "--json"]);
    let health: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(health["missing"], "", "with these two the probes are tried");
    assert!(health["facilities"].as_array().unwrap().iter().all(|f| f["tried"] == true));
}
