// SPDX-License-Identifier: Apache-2.0
//! A storm of wakeups: threads that end each other's waits as fast as the host can. What is kept of it has a bound, what is
//! left out is counted, and the ledger is whole all the same.

use std::io::{Read, Write, pipe};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::spawn;
use std::time::Duration;

use collect::capture::{CallCounting, Plan, Role, SLICE, run};
use collect::probes::Room;
use collect::target::Target;
use recording::tables::{Cost, Loss, Wakeup};
use recording::{Meta, Writer};
use testing::need;

use crate::tool::{Running, host, kernel_allows};

const ROLE: &str = "WAKEWALK_TEST_STORM";
/// More than CPUs, so that there is always somebody to wake.
const PAIRS: usize = 8;
const SECONDS: u64 = 3;
/// Rows of wakeups a second that the probe may write, with room for a busy host's turns.
const ROWS_PER_SECOND: usize = 2_500;
/// Wakeups in the whole capture without which this was no storm; a quiet host makes ten times as many.
const STORM: u64 = 60_000;

#[test]
#[ignore = "not a test: the process with the storm"]
fn storm() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    for _ in 0..PAIRS {
        let ((mut a_in, mut a_out), (mut b_in, mut b_out)) = (pipe().unwrap(), pipe().unwrap());
        b_out.write_all(b"x").unwrap();
        spawn(move || pass_on(&mut a_in, &mut b_out));
        spawn(move || pass_on(&mut b_in, &mut a_out));
    }
    let _ = std::io::stdin().read(&mut [0]); // until the test closes the pipe
}

fn pass_on(from: &mut impl Read, to: &mut impl Write) {
    let mut ball = [0];
    while from.read_exact(&mut ball).is_ok() && to.write_all(&ball).is_ok() {}
}

#[test]
fn a_storm_of_wakeups_is_bounded_and_told() {
    need!(kernel_allows());
    let _alone = host();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "storm::storm", "--ignored"]).env(ROLE, "1");
    let target = Running(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    std::thread::sleep(Duration::from_millis(500));

    let dir = tempfile::tempdir().unwrap();
    let root = PathBuf::from("/");
    let plan = Plan {
        target: Target::Pid(target.0.id()).resolve(&root).unwrap(),
        length: Duration::from_secs(SECONDS),
        slice: SLICE,
        calls: CallCounting::Never,
        labels: false,
        role: Role::Service,
        slo: None,
        root,
        tool: "wakewalk test".into(),
        room: Room::Whole,
    };
    let mut writer = Writer::create(dir.path(), &Meta { tool: plan.tool.clone(), ..Meta::default() }).unwrap();
    run(&plan, &mut writer, &AtomicBool::new(false), &mut |_| {}).unwrap();
    let recording = recording::open(dir.path()).unwrap();
    let verdict = diagnose::diagnose(&recording);

    let wakings = recording.rows::<Cost>().iter().filter(|cost| cost.what == "bpf:sched_waking");
    let seen: u64 = wakings.map(|cost| cost.runs).sum();
    assert!(seen > STORM, "{seen} wakeups in {SECONDS} s");
    let rows = recording.rows::<Wakeup>();
    assert!(rows.len() < ROWS_PER_SECOND * (SECONDS as usize + 1), "{} rows of {seen} wakeups", rows.len());
    // Rows stand for the waits between them.
    let told: u64 = rows.iter().map(|row| u64::from(row.waits)).sum();
    assert!(told > rows.len() as u64, "{told} waits in {} rows", rows.len());
    let lost: u64 = recording.rows::<Loss>().iter().map(|loss| loss.count).sum();
    assert_eq!(verdict.coverage.events_lost, lost);
    assert!(verdict.coverage.thread_time > 0.99, "{:?}", verdict.coverage);
}
