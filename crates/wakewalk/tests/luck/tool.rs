// SPDX-License-Identifier: Apache-2.0
//! The command as a user runs it, and processes to look at.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use diagnose::verdict::Verdict;
use testing::given;

pub const WAKEWALK: &str = env!("CARGO_BIN_EXE_wakewalk");
/// Bound of every wait; reached only when something is broken.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn wakewalk(args: &[&str]) -> Output {
    Command::new(WAKEWALK).args(args).stdin(Stdio::null()).output().unwrap()
}

/// What a refusal says; exit code 2, one line, nothing on standard output.
pub fn sentence(out: &Output) -> String {
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("wakewalk: ") && !said.contains("panicked"), "{said}");
    assert!(out.stdout.is_empty(), "nothing on standard output but an answer");
    last.to_string()
}

pub fn refused(args: &[&str]) -> String {
    sentence(&wakewalk(args))
}

/// The verdict that a run with --json printed.
pub fn read(out: &Output) -> Verdict {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

pub fn verdict(args: &[&str]) -> Verdict {
    read(&wakewalk(&[&["diagnose", "--json"], args].concat()))
}

/// Whether the kernel takes our probes at all.
pub fn kernel_allows() -> Result<(), &'static str> {
    static ALLOWS: OnceLock<bool> = OnceLock::new();
    let allows = *ALLOWS.get_or_init(|| {
        let out = wakewalk(&["doctor", "--json"]);
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()["bpf"] == true
    });
    given(allows, "wakewalk doctor says that BPF cannot be used here")
}

/// For tests that take all of the host: one at a time.
pub fn host() -> MutexGuard<'static, ()> {
    static HOST: Mutex<()> = Mutex::new(());
    HOST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that ends with the test.
pub struct Running(pub Child);

impl Running {
    pub fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    pub fn sleep() -> Self {
        Self::start(Command::new("sleep").arg("600"))
    }

    /// A process that is always on a CPU.
    pub fn spin() -> Self {
        Self::start(Command::new("sh").args(["-c", "while :; do :; done"]))
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks until the answer is there.
pub fn poll<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begin.elapsed() < PATIENCE, "no {what} within {PATIENCE:?}");
        sleep(Duration::from_millis(10));
    }
}

pub fn send(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status().unwrap().success());
}

/// A script in a mount namespace of its own, so that what it mounts is gone with it.
pub fn in_mounts(script: &str, args: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).args(args).stdin(Stdio::null());
    command
}

pub fn with_mounts(script: &str, args: &[&str]) -> Output {
    in_mounts(script, args).output().unwrap()
}

/// Whether such a namespace can be had.
pub fn can_mount() -> Result<(), &'static str> {
    let can = with_mounts("mount -t tmpfs none /mnt", &[]).status.success();
    given(can, "not root, so nothing can be mounted")
}

/// A web server that says yes to all; its address.
pub fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]); // whatever it is
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    format!("http://127.0.0.1:{port}/")
}

/// A golden recording.
pub fn fixture(name: &str) -> recording::Recording {
    recording::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/fixtures").join(name).join("recording"))
        .unwrap()
}

pub fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
