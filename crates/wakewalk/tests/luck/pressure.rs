// SPDX-License-Identifier: Apache-2.0
//! More threads than the kernel's tables hold. A hundred thousand threads are more than a small machine
//! allows, so the tables are made small instead: 3,000 threads press on 64 rows as hard.

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::{sleep, spawn};
use std::time::Duration;

use collect::capture::{CallCounting, Plan, Role, SLICE, run};
use collect::probes::Room;
use collect::target::Target;
use diagnose::verdict::Verdict;
use recording::tables::{Loss, Thread, Wait};
use recording::{Meta, Recording, Writer};
use testing::need;

use crate::tool::{Running, host, kernel_allows, poll};

const THREADS: usize = 3000;
/// Threads that start and end others: together more of them than a small ring holds until it is read.
const SPAWNERS: usize = 4;
const ROLE: &str = "WAKEWALK_TEST_MANY_THREADS";

/// The process under observation: threads that wait, each for a time of its own, and short-lived ones.
#[test]
#[ignore = "not a test: the process with many threads"]
fn many_threads() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    for n in 0..THREADS {
        spawn(move || {
            loop {
                sleep(Duration::from_millis(200 + n as u64 % 800));
            }
        });
    }
    for _ in 0..SPAWNERS {
        spawn(|| {
            loop {
                sleep(Duration::from_millis(1));
                spawn(|| ()).join().unwrap();
            }
        });
    }
    let _ = std::io::stdin().read(&mut [0]); // until the test closes the pipe
}

fn target() -> Running {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "pressure::many_threads", "--ignored"]).env(ROLE, "1");
    let child = Running(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    poll("threads", || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.pid())).ok()?;
        (tasks.count() > THREADS).then_some(())
    });
    child
}

fn capture(target: &Running, room: Room) -> (Recording, Verdict) {
    let dir = tempfile::tempdir().unwrap();
    let root = PathBuf::from("/");
    let plan = Plan {
        target: Target::Pid(target.0.id()).resolve(&root).unwrap(),
        length: Duration::from_secs(2),
        slice: SLICE,
        calls: CallCounting::Never,
        labels: false,
        role: Role::Service,
        slo: None,
        root,
        tool: "wakewalk test".into(),
        room,
    };
    let mut writer = Writer::create(dir.path(), &Meta { tool: plan.tool.clone(), ..Meta::default() }).unwrap();
    run(&plan, &mut writer, &AtomicBool::new(false), &mut |_| {}).unwrap();
    let recording = recording::open(dir.path()).unwrap();
    let verdict = diagnose::diagnose(&recording);
    (recording, verdict)
}

/// Kept and lost over the whole capture.
fn loss(recording: &Recording, what: &str) -> (u64, u64) {
    let slices: Vec<&Loss> = recording.rows::<Loss>().iter().filter(|loss| loss.what == what).collect();
    assert!(!slices.is_empty(), "{what} is told even if nothing was lost");
    slices.iter().fold((0, 0), |sum, slice| (sum.0 + slice.kept, sum.1 + slice.count))
}

#[test]
fn full_tables_are_counted_and_told() {
    need!(kernel_allows());
    let _alone = host();
    let target = target();
    // On a full host the kernel refuses one of ten thousand new threads its place, where one fork is preempted by another.
    let (mut whole, mut calm) = capture(&target, Room::Whole);
    for _ in 0..2 {
        if calm.coverage.events_lost > 0 {
            (whole, calm) = capture(&target, Room::Whole);
        }
    }
    assert_eq!(calm.coverage.events_lost, 0, "{:?}", whole.rows::<Loss>());
    let waited: HashSet<u32> = whole.rows::<Wait>().iter().map(|wait| wait.tid).collect();
    assert!(waited.len() > THREADS, "every thread has a row: {}", waited.len());

    let (pressed, v) = capture(&target, Room::OneIn(1024));
    println!("{:?}", pressed.rows::<Loss>());
    let (kept, lost) = loss(&pressed, "waits");
    assert!(lost > THREADS as u64, "64 rows a slice for 3,000 threads' waits: {kept} kept, {lost} lost");
    assert!(loss(&pressed, "thread ends").1 > 0, "a ring of one page");
    let counted: u64 = pressed.rows::<Loss>().iter().map(|loss| loss.count).sum();
    assert_eq!(v.coverage.events_lost, counted, "what was lost is told");

    // Time is not lost: threads are kept by the thread, and of lost ends the sum is kept.
    assert!(v.coverage.thread_time > 0.99, "{:?}", v.coverage);
    let wall = |recording: &Recording| recording.rows::<Thread>().iter().map(|t| t.wall_ns).sum::<u64>() as f64;
    let expected = ((THREADS + SPAWNERS) as f64 + 2.0) * pressed.meta.length_ns as f64;
    assert!((wall(&pressed) / expected - 1.0).abs() < 0.1, "{} of {expected} ns", wall(&pressed));
    // What the lost rows would have said is unknown, and said to be.
    assert!(v.coverage.blocked_time < 0.5 && calm.coverage.blocked_time > 0.9, "{:?}", v.coverage);
    assert!(v.ledger.threads["blocked_unattributed"] > 0.5 * v.ledger.threads["wall"], "{:?}", v.ledger);
    // A host that is busy itself may be a cause; without one the loss decides.
    if v.findings.is_empty() {
        assert_eq!(v.verdict, "not-determined", "{}", v.headline);
        assert!(v.detail.contains("were lost"), "{}", v.detail);
    }
    assert!(v.gaps.iter().any(|gap| gap.what == "waits" && gap.why.contains("were lost")), "{:?}", v.gaps);
}
