// SPDX-License-Identifier: Apache-2.0
//! CPU of short-lived children against what their cgroup counts: a service that forks must not hide
//! its CPU time from the ledger. The cgroup is the test's own, in the v1 cpuacct hierarchy.

#![allow(unsafe_code, clippy::unwrap_used)] // fork and prctl, in the child

use std::fs;
use std::io::Write;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use testing::{need, need_of_host};
use wakewalk_collect::probes::Probe as _;
use wakewalk_collect::probes::ledger::{Ledger, What};

const ROLE: &str = "WAKEWALK_TEST_ROLE";
const CHILDREN: usize = 1500;
const PER_SECOND: u32 = 500;

/// A cgroup that is removed when the test ends.
struct Cgroup(PathBuf);

impl Cgroup {
    /// Fails where the host has no v1 cpuacct hierarchy.
    fn make(role: &str) -> anyhow::Result<Self> {
        let path = PathBuf::from(format!("/sys/fs/cgroup/cpuacct/wakewalk-test-{}-{role}", std::process::id()));
        fs::create_dir(&path).context("no v1 cpuacct cgroup to be had")?;
        Ok(Self(path))
    }

    fn usage_ns(&self) -> u64 {
        fs::read_to_string(self.0.join("cpuacct.usage")).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The parent role: waits for a line, then starts `CHILDREN` children at a steady rate and ends.
fn start_children(child: &mut dyn FnMut()) {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let begin = Instant::now();
    for i in 0..CHILDREN {
        child();
        let due = Duration::from_secs(1) * u32::try_from(i).unwrap() / PER_SECOND;
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
    }
}

fn fork_and_spin() {
    // SAFETY: the child only reads the clock and leaves with _exit; the parent waits for it.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(1) {}
            libc::_exit(0);
        }
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
}

fn exec_true() {
    Command::new("/bin/true").status().unwrap();
}

#[test]
#[ignore = "not a test: what the parent of the children runs"]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("fork") => start_children(&mut fork_and_spin),
        Ok("exec") => start_children(&mut exec_true),
        _ => {}
    }
}

fn parent(role: &str) -> Child {
    let me = std::env::current_exe().unwrap();
    let mut command = Command::new(me);
    command
        .args(["--exact", "role", "--ignored", "--test-threads", "1"])
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    command.spawn().unwrap()
}

fn share_of_cgroup(role: &str, cgroup: &Cgroup, mut ledger: Ledger<'_>) -> f64 {
    let mut parent = parent(role);
    fs::write(cgroup.0.join("cgroup.procs"), parent.id().to_string()).unwrap();
    std::thread::sleep(Duration::from_millis(300)); // it waits for its line
    ledger.seed(&[parent.id()]).unwrap();
    let before = cgroup.usage_ns();
    parent.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut ended = Vec::new();
    while parent.try_wait().unwrap().is_none() {
        ended.extend(ledger.events().unwrap().into_iter().filter(|t| t.what == What::Exited));
        std::thread::sleep(Duration::from_millis(20));
    }
    let after = cgroup.usage_ns();
    ledger.detach();
    ended.extend(ledger.events().unwrap().into_iter().filter(|t| t.what == What::Exited));
    let counts = ledger.counts().unwrap();
    assert!(counts.exits_lost == 0 && counts.forks_lost == 0, "{counts:?}");
    let children = ended.iter().filter(|t| t.tid == t.tgid).count();
    assert!(children >= CHILDREN, "{children} of {CHILDREN} children seen");
    let share = ended.iter().map(|t| t.sum.cpu).sum::<u64>() as f64 / (after - before) as f64;
    println!("{role}: {children} children, {share:.4} of the cgroup's CPU time");
    share
}

#[test]
fn children_that_spin_for_a_millisecond_are_counted() {
    let mut storage = MaybeUninit::uninit();
    let ledger = need!(Ledger::load(&mut storage));
    let cgroup = need_of_host!(Cgroup::make("fork"));
    let share = share_of_cgroup("fork", &cgroup, ledger);
    assert!((0.98..1.02).contains(&share), "the ledger has {share:.4} of the cgroup's CPU time");
}

#[test]
fn children_that_exec_are_counted() {
    let mut storage = MaybeUninit::uninit();
    let ledger = need!(Ledger::load(&mut storage));
    let cgroup = need_of_host!(Cgroup::make("exec"));
    let share = share_of_cgroup("exec", &cgroup, ledger);
    assert!((0.98..1.02).contains(&share), "the ledger has {share:.4} of the cgroup's CPU time");
}
