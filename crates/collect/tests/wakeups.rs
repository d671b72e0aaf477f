// SPDX-License-Identifier: Apache-2.0
//! The probe of wakeups against a child whose waits are known: it reads a pipe, into which this process writes.

#![allow(unsafe_code, clippy::unwrap_used)] // prctl(2), in the child

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use wakewalk_collect::probes::ledger::Ledger;
use wakewalk_collect::probes::wakeups::{Wakeup, Wakeups};

const ROLE: &str = "WAKEWALK_TEST_ROLE";
const LETTERS: u64 = 40;

#[test]
#[ignore = "not a test: what the child runs"]
fn role() {
    if std::env::var_os(ROLE).is_some() {
        // SAFETY: no pointers; the child is to end with the thread that started it.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let mut letter = [0];
        while std::io::stdin().read_exact(&mut letter).is_ok() {}
    }
}

/// A child that reads its standard input.
fn reader() -> Child {
    let me = std::env::current_exe().unwrap();
    let mut command = Command::new(me);
    command.args(["--exact", "role", "--ignored"]).env(ROLE, "read").stdin(Stdio::piped()).stdout(Stdio::null());
    let child = command.spawn().unwrap();
    sleep(Duration::from_millis(300));
    child
}

/// One wait of the child, which this process ended.
fn check(row: &Wakeup, me: u32) {
    assert!(row.waker.tgid == me && row.context == "thread", "{row:?}");
    assert_eq!(i64::from(row.sleeper.syscall), libc::SYS_read);
    assert_eq!(i64::from(row.waker.syscall), libc::SYS_write);
    assert!(row.fd_kind == "pipe" && row.sleeper.ports.family == 0, "{row:?}");
    assert!(row.wait_ns > 3_000_000 && row.blocked_ns >= row.wait_ns, "{row:?}");
    assert!(row.since_ns < row.at_ns && row.sleeper.stack != 0 && row.waker.stack != 0, "{row:?}");
    let wall = row.at_ns - row.since_ns;
    assert_eq!(wall, row.blocked_ns + row.cpu_ns + row.run_queue_ns, "{row:?}");
}

#[test]
fn every_wait_has_its_length_its_place_and_its_waker() {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = match Ledger::load(&mut a) {
        Ok(ledger) => ledger,
        Err(refused) => return eprintln!("SKIPPED: {refused:#}"),
    };
    let mut child = reader();
    ledger.seed(&[child.id()]).unwrap();
    let mut wakeups = Wakeups::load(&mut b, &ledger).unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut rows = Vec::new();
    for _ in 0..LETTERS {
        sleep(Duration::from_millis(5));
        pipe.write_all(b"x").unwrap();
        rows.extend(wakeups.rows().unwrap());
    }
    sleep(Duration::from_millis(50));
    wakeups.detach();
    rows.extend(wakeups.rows().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();

    let counts = wakeups.counts().unwrap();
    assert_eq!(counts.rows_lost, 0, "{counts:?}");
    let of_child: Vec<_> = rows.iter().filter(|row| row.sleeper.tgid == child.id()).collect();
    // The length of the first wait is not known, and rows are put off where others take all turns.
    let waits: u64 = of_child.iter().map(|row| u64::from(row.waits)).sum();
    assert!(waits <= LETTERS && waits + counts.put_off + 3 >= LETTERS, "{waits} of {LETTERS}: {counts:?}");
    let me = std::process::id();
    of_child.iter().for_each(|row| check(row, me));
    // Whoever woke it is followed: our own sleeps are waits that a timer ends.
    let ours = rows.iter().filter(|row| row.sleeper.tgid == me && row.context == "interrupt").count();
    assert!(ours > 0, "{counts:?}");
}
