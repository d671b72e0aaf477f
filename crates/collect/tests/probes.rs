// SPDX-License-Identifier: Apache-2.0
//! The profile and the call windows against a child whose calls are known: `yes`-like loops of a
//! shell are no good (builtins), so the child is this test binary itself in another role.

#![allow(unsafe_code, clippy::unwrap_used)] // poll(2) and prctl(2), in the child

use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use testing::need;
use wakewalk_collect::probes::Probe as _;
use wakewalk_collect::probes::calls::{Calls, Kind};
use wakewalk_collect::probes::ledger::Ledger;
use wakewalk_collect::probes::profile::Profile;

const ROLE: &str = "WAKEWALK_TEST_ROLE";

/// A child that polls an empty pipe with this timeout for ever.
fn poll_for_ever(timeout_ms: i32) -> ! {
    // SAFETY: no pointers; the child is to end with the thread that started it.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let (reader, _writer) = std::io::pipe().unwrap();
    let mut polled = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&raw mut polled, 1, timeout_ms) };
    }
}

struct Poller(Child);

impl Poller {
    fn start(timeout_ms: i32) -> Self {
        let me = std::env::current_exe().unwrap();
        let child = Command::new(me)
            .args(["--exact", "role", "--ignored"])
            .env(ROLE, timeout_ms.to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// One that polls without a pause, and whose threads are looked at.
    fn watched_by(ledger: &Ledger<'_>) -> Self {
        Self::waiting(0, ledger)
    }

    /// The same of one that waits so long in each poll.
    fn waiting(timeout_ms: i32, ledger: &Ledger<'_>) -> Self {
        let poller = Self::start(timeout_ms);
        sleep(Duration::from_millis(300));
        ledger.seed(&[poller.0.id()]).unwrap();
        poller
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "not a test: what the child runs"]
fn role() {
    if let Ok(timeout_ms) = std::env::var(ROLE) {
        poll_for_ever(timeout_ms.parse().unwrap());
    }
}

fn cpus() -> Vec<u32> {
    (0..std::thread::available_parallelism().unwrap().get() as u32).collect()
}

#[test]
fn samples_show_the_call_its_arguments_and_the_stack() {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = need!(Ledger::load(&mut a));
    let poller = Poller::watched_by(&ledger);
    let mut profile = Profile::load(&mut b, &ledger, &cpus(), 197, 16 << 10).unwrap();
    let mut samples = Vec::new();
    for _ in 0..100 {
        sleep(Duration::from_millis(50));
        samples.extend(profile.samples().unwrap());
        if samples.len() > 100 {
            break;
        }
    }
    profile.detach();
    assert!(samples.len() > 100, "{} samples", samples.len());
    let in_poll: Vec<_> = samples.iter().filter(|s| !s.user_mode && s.registers[15] == libc::SYS_poll as u64).collect();
    assert!(in_poll.len() > 10, "{} of {} in poll", in_poll.len(), samples.len());
    for s in &in_poll {
        assert_eq!(s.registers[12], 0, "third argument of poll: timeout 0");
        assert!(s.tgid == poller.0.id() && !s.kernel.is_empty() && s.stack.len() > 256, "{s:?}");
    }
    assert_eq!(profile.counts().unwrap().lost, 0);
}

#[test]
fn clocks_follow_the_cpus_that_work() {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = need!(Ledger::load(&mut a));
    let mut profile = Profile::load(&mut b, &ledger, &[0], 197, 4 << 10).unwrap();
    let more: Vec<u32> = cpus()[1..].to_vec();
    assert_eq!((profile.follow(&[0]), profile.follow(&cpus())), (vec![], more.clone()));
    assert_eq!((profile.follow(&more), profile.follow(&cpus()).len()), (vec![], usize::from(!more.is_empty())));
    profile.detach();
    assert_eq!(profile.follow(&cpus()), [0; 0], "all were stopped");
}

/// CPU time of a process, seconds.
fn cpu_seconds(pid: u32) -> f64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let text = threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("schedstat")).unwrap());
    text.map(|text| text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9).sum()
}

#[test]
fn samples_of_a_lowered_rate_stand_for_as_much_time() {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = need!(Ledger::load(&mut a));
    let poller = Poller::watched_by(&ledger);
    let mut profile = Profile::load(&mut b, &ledger, &cpus(), 197, 4 << 10).unwrap();
    let pace = |cpu: u32| if cpu == 0 { 2 } else { 4 };
    cpus().iter().for_each(|cpu| profile.set_pace(*cpu, pace(*cpu)));
    profile.samples().unwrap(); // of before
    let before = cpu_seconds(poller.0.id());
    let (mut rows, mut stands_for) = (0, 0.0);
    for _ in 0..40 {
        sleep(Duration::from_millis(50));
        for sample in profile.samples().unwrap() {
            rows += 1;
            assert_eq!(sample.weight, u32::from(pace(sample.cpu)), "on CPU {}", sample.cpu);
            stands_for += f64::from(sample.weight);
        }
    }
    let expected = (cpu_seconds(poller.0.id()) - before) * 197.0;
    assert!((0.8..1.2).contains(&(stands_for / expected)), "{rows} rows stand for {stands_for}, not {expected}");
}

#[test]
fn a_window_counts_calls_by_argument_and_result() {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = need!(Ledger::load(&mut a));
    let poller = Poller::watched_by(&ledger);
    let mut calls = Calls::load(&mut b, ledger.threads()).unwrap();
    for (kind, id) in [(Kind::Results, 1), (Kind::Latency, 2)] {
        let window = calls.open(kind).unwrap();
        sleep(Duration::from_millis(200));
        let counted = calls.close(window, id, 0).unwrap();
        let polls: Vec<_> = counted.calls.iter().filter(|c| i64::from(c.syscall) == libc::SYS_poll).collect();
        let empty: u64 = polls
            .iter()
            .filter(|c| c.result == 0 && c.argument == 0 && c.argument_kind == "timeout")
            .map(|c| c.count)
            .sum();
        let all: u64 = counted.calls.iter().map(|c| c.count).sum();
        assert!(all == counted.seen && counted.lost == 0, "{all} of {}", counted.seen);
        assert!(empty > 100 && empty + 5 > all, "{empty} empty polls of {all} calls");
        assert_eq!(kind == Kind::Latency, !counted.latencies.is_empty());
        assert!(
            !counted.examples.is_empty()
                && counted.examples.iter().all(|e| e.args.len() == 6 && e.pid == poller.0.id())
        );
    }
}

/// A thread is in a call when a window closes: when that call ends, nobody looks, and no later window may tell how long it took.
#[test]
fn a_call_that_outlasts_its_window_is_not_timed() {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = need!(Ledger::load(&mut a));
    let _poller = Poller::waiting(150, &ledger);
    let mut calls = Calls::load(&mut b, ledger.threads()).unwrap();
    let between = Duration::from_secs(2);
    let mut longest_ns = Vec::new();
    for (kind, id) in [(Kind::Latency, 1), (Kind::Latency, 2), (Kind::Results, 3)] {
        let window = calls.open(kind).unwrap();
        sleep(Duration::from_millis(500));
        let counted = calls.close(window, id, 0).unwrap();
        assert!(counted.seen > 0, "window {id}");
        longest_ns.push(counted.latencies.iter().map(|row| row.from_ns).max());
        sleep(if id == 1 { between } else { Duration::ZERO });
    }
    let likely = 1 << 26..between.as_nanos() as u64 / 2;
    let is_likely = |ns: &Option<u64>| ns.is_some_and(|ns| likely.contains(&ns));
    assert!(longest_ns[..2].iter().all(is_likely), "{longest_ns:?} of polls of 150 ms");
    assert_eq!(longest_ns[2], None, "it measures no time");
}
