// SPDX-License-Identifier: Apache-2.0
//! The ledger against programs whose time is known. Needs root; see `kernel_allows`.

#![allow(clippy::unwrap_used)]

use std::mem::MaybeUninit;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use testing::need;
use wakewalk_collect::probes::ledger::{Ledger, ThreadRow, Totals, What};

/// A child that is killed when the test ends.
struct Running(Child);

impl Running {
    fn shell(script: &str) -> Self {
        Self(Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where not even a probe load works there is nothing to test; that is said, not hidden.
fn kernel_allows() -> anyhow::Result<()> {
    Ledger::load(&mut MaybeUninit::uninit()).map(drop)
}

fn sum_of_lines(t: &Totals) -> u64 {
    t.cpu + t.run_queue + t.preempted + t.throttled + t.blocked + t.interrupted
}

fn watch(pids: &[u32], length: Duration) -> (Vec<ThreadRow>, Vec<ThreadRow>) {
    let mut storage = MaybeUninit::uninit();
    let mut ledger = Ledger::load(&mut storage).unwrap();
    ledger.seed(pids).unwrap();
    sleep(length);
    let living = ledger.read(true).unwrap();
    (living, ledger.events().unwrap())
}

#[test]
fn lines_add_up_to_the_wall_time() {
    need!(kernel_allows());
    let busy = Running::shell("while :; do :; done");
    let asleep = Running::shell("read x");
    let both = Running::shell("while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.01; done");
    let (rows, _) = watch(&[busy.0.id(), asleep.0.id(), both.0.id()], Duration::from_secs(2));
    let of = |child: &Running| rows.iter().find(|r| r.tid == child.0.id()).unwrap();
    for row in &rows {
        let (sum, wall) = (sum_of_lines(&row.sum) as f64, row.sum.wall as f64);
        assert!((sum / wall - 1.0).abs() < 0.01, "{} {sum} of {wall}: {:?}", row.comm, row.sum);
        assert!(row.sum.wall > 1_900_000_000 || row.born_ns > 0, "{row:?}");
    }
    let (busy, asleep, both) = (of(&busy).sum, of(&asleep).sum, of(&both).sum);
    assert_eq!(busy.blocked, 0);
    // On a CPU, or held off it by others: their interrupts and turns are not under the test's control.
    let wanted = busy.cpu + busy.run_queue + busy.preempted + busy.interrupted;
    assert!(busy.cpu > 0 && wanted > busy.wall / 100 * 98, "{busy:?}");
    assert!(asleep.blocked > asleep.wall / 100 * 99, "never switches, so the iterators must tell: {asleep:?}");
    assert!(both.blocked > 0 && both.cpu > 0 && both.voluntary > 0, "{both:?}");
}

#[test]
fn lines_add_up_at_many_switches_a_second() {
    need!(kernel_allows());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    sleep(Duration::from_micros(60));
                }
            });
        }
        let (rows, _) = watch(&[std::process::id()], Duration::from_secs(2));
        stop.store(true, Ordering::Relaxed);
        let (sum, wall) = rows.iter().fold((0, 0), |all, r| (all.0 + sum_of_lines(&r.sum), all.1 + r.sum.wall));
        let switches: u64 = rows.iter().map(|r| r.sum.voluntary).sum();
        assert!(switches > 5_000, "{switches} switches");
        assert!((sum as f64 / wall as f64 - 1.0).abs() < 0.002, "{sum} of {wall} at {switches} switches");
    });
}

#[test]
fn children_are_followed_and_their_ends_reported() {
    need!(kernel_allows());
    let mut parent = Running::shell(
        "read go; for i in 1 2 3 4 5 6 7 8 9 10; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; done; read x",
    );
    let mut storage = MaybeUninit::uninit();
    let ledger = Ledger::load(&mut storage).unwrap();
    ledger.seed(&[parent.0.id()]).unwrap();
    std::io::Write::write_all(parent.0.stdin.as_mut().unwrap(), b"go\n").unwrap();
    let mut ended = Vec::new();
    for _ in 0..600 {
        ended.extend(ledger.events().unwrap().into_iter().filter(|t| t.what == What::Exited));
        if ended.len() >= 10 {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    assert_eq!(ended.len(), 10, "ten children ended");
    for row in &ended {
        assert!(row.what == What::Exited && row.born_ns > 0 && row.sum.cpu > 0, "{row:?}");
        assert!((sum_of_lines(&row.sum) as f64 / row.sum.wall as f64 - 1.0).abs() < 0.01, "{row:?}");
    }
    assert_eq!(ledger.counts().unwrap().exits_lost, 0);
}

/// A program that another thread than the first one starts: what that thread did until then is told once, under its own id.
#[test]
fn a_thread_that_starts_a_program() {
    need!(kernel_allows());
    // Its start is over when it is looked at first, and it lives for longer than it takes to look at what comes after it.
    let script = "import os, sys, threading, time\nprint('up', flush=True)\nsys.stdin.readline()\ndef starts():\n for i in range(3000000): pass\n \
                  time.sleep(2)\n os.execvp('sleep', ['sleep', '60'])\nthreading.Thread(target=starts).start()";
    let starter = Command::new("python3").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut starter = Running(need!(starter.map_err(|e| format!("python3: {e}"))));
    let mut storage = MaybeUninit::uninit();
    let mut ledger = Ledger::load(&mut storage).unwrap();
    let pid = starter.0.id();
    std::io::Read::read_exact(starter.0.stdout.as_mut().unwrap(), &mut [0; 3]).unwrap();
    ledger.seed(&[pid]).unwrap();
    std::io::Write::write_all(starter.0.stdin.as_mut().unwrap(), b"go\n").unwrap();
    let mut told = Vec::new();
    for _ in 0..600 {
        told.extend(ledger.events().unwrap().into_iter().filter(|row| row.tgid == pid && row.what == What::Exited));
        // Of the first thread, and of the other under its old id.
        if told.len() >= 2 {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    let ended = |is_first: bool| told.iter().find(|row| (row.tid == pid) == is_first).unwrap();
    let (first, other) = (ended(true), ended(false));
    let living = ledger.read(false).unwrap();
    let left = living.iter().find(|row| row.tid == pid).unwrap();
    assert!(other.sum.cpu > first.sum.cpu && other.tgid == pid, "{other:?} after {first:?}");
    assert!(left.sum.wall < other.sum.wall && left.sum.cpu < other.sum.cpu, "{left:?} after {other:?}");
}

#[test]
fn the_signal_that_ended_a_process() {
    need!(kernel_allows());
    let mut parent = Running::shell(
        "exec 2>/dev/null; read go; sh -c 'kill -SEGV $$'; sh -c 'kill -TERM $$'; sh -c 'exit 11'; read x",
    );
    let mut storage = MaybeUninit::uninit();
    let ledger = Ledger::load(&mut storage).unwrap();
    ledger.seed(&[parent.0.id()]).unwrap();
    std::io::Write::write_all(parent.0.stdin.as_mut().unwrap(), b"go\n").unwrap();
    let mut signals = Vec::new();
    for _ in 0..600 {
        let ended = ledger.events().unwrap().into_iter().filter(|row| row.what == What::Exited);
        signals.extend(ended.map(|row| row.signal));
        if signals.len() >= 3 {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    assert_eq!(signals, [11, 15, 0]);
}

#[test]
fn waits_say_the_call_and_the_kind_of_descriptor() {
    need!(kernel_allows());
    let pipe = Running::shell("read x");
    let timer = Running(Command::new("sleep").arg("60").spawn().unwrap());
    let mut storage = MaybeUninit::uninit();
    let mut ledger = Ledger::load(&mut storage).unwrap();
    sleep(Duration::from_millis(200)); // both have reached their wait
    ledger.seed(&[pipe.0.id(), timer.0.id()]).unwrap();
    sleep(Duration::from_millis(300));
    ledger.read(true).unwrap();
    let (waits, stacks) = (ledger.waits().unwrap(), ledger.stacks().unwrap());
    let of = |child: &Running| waits.iter().find(|w| w.tid == child.0.id()).unwrap();
    assert_eq!((i64::from(of(&pipe).syscall), of(&pipe).fd_kind), (libc::SYS_read, "pipe"));
    assert_eq!(i64::from(of(&timer).syscall), libc::SYS_clock_nanosleep);
    for wait in [of(&pipe), of(&timer)] {
        assert!(wait.total_ns > 250_000_000, "{wait:?}");
        assert!(stacks[&wait.stack].len() > 3, "{wait:?}");
    }
}

/// A thread that never wakes, and one that waits for 30 ms at a time: the waits of each slice are the time blocked in it.
#[test]
fn waits_of_a_slice_are_the_time_blocked_in_it() {
    need!(kernel_allows());
    let asleep = Running::shell("read x");
    let often = Running::shell("while :; do sleep 0.03; done");
    let pids = [asleep.0.id(), often.0.id()];
    let mut storage = MaybeUninit::uninit();
    let mut ledger = Ledger::load(&mut storage).unwrap();
    sleep(Duration::from_millis(100));
    ledger.seed(&pids).unwrap();
    let mut told = [0, 0];
    for slice in 0..5 {
        sleep(Duration::from_millis(300));
        let rows = ledger.read(slice == 4).unwrap();
        let waits = ledger.waits().unwrap();
        for (pid, told) in pids.iter().zip(&mut told) {
            let blocked = rows.iter().find(|row| row.tid == *pid).unwrap().sum.blocked;
            *told += waits.iter().filter(|wait| wait.tid == *pid).map(|wait| wait.total_ns).sum::<u64>();
            // The one that goes on may have waited between the two readings, on a busy host more than once.
            let between = if *pid == often.0.id() { 100_000_000 } else { 0 };
            assert!(told.abs_diff(blocked) <= blocked / 100 + between, "slice {slice}, {pid}: {told} of {blocked}");
            let ended: u64 = waits.iter().filter(|wait| wait.tid == *pid).map(|wait| wait.count).sum();
            assert!(*pid == often.0.id() || ended == u64::from(slice == 4), "it goes on: {waits:?}");
        }
        let longest = waits.iter().filter(|wait| wait.tid == asleep.0.id()).map(|wait| wait.max_ns).max().unwrap();
        assert!(longest > 250_000_000 * (slice + 1), "as long as it took until then: {longest}");
    }
    assert!(ledger.waits().unwrap().is_empty(), "nothing is told twice");
}

/// Polls until something holds of a process.
fn until(holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(50));
    }
    panic!("not after 30 s");
}

#[test]
fn a_stop_is_told_and_a_lock_on_a_file_with_its_file_system() {
    need!(kernel_allows());
    let text = |child: &Running, file: &str| {
        std::fs::read_to_string(format!("/proc/{}/{file}", child.0.id())).unwrap_or_default()
    };
    let stopped = Running::shell("kill -STOP $$; read x");
    let file = std::env::temp_dir().join(format!("wakewalk-lock-{}", std::process::id()));
    let held = std::fs::File::create(&file).unwrap();
    held.lock().unwrap();
    let waiting = Running(Command::new("flock").arg(&file).arg("true").spawn().unwrap());
    until(|| text(&stopped, "stat").contains(") T "));
    until(|| text(&waiting, "syscall").starts_with(&format!("{} ", libc::SYS_flock)));
    let mut storage = MaybeUninit::uninit();
    let mut ledger = Ledger::load(&mut storage).unwrap();
    ledger.seed(&[stopped.0.id(), waiting.0.id()]).unwrap();
    sleep(Duration::from_millis(50));
    ledger.read(true).unwrap();
    let waits = ledger.waits().unwrap();
    let of = |child: &Running| waits.iter().find(|w| w.tid == child.0.id()).unwrap();
    assert_eq!(of(&stopped).state, 4, "{:?}", of(&stopped));
    assert_eq!((of(&waiting).fd_kind, of(&waiting).state), ("file", 1));
    assert_ne!(of(&waiting).file_system, 0);
    drop(held);
    std::fs::remove_file(&file).unwrap();
}
