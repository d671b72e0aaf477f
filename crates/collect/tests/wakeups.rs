// SPDX-License-Identifier: Apache-2.0
//! The probe of wakeups against a child whose waits are known: it reads a pipe into which this process writes, or waits for
//! a connection to it by epoll or poll.

#![allow(unsafe_code, clippy::unwrap_used)] // prctl(2), in the child

use std::io::{Read, Write, stdout};
use std::mem::MaybeUninit;
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use anyhow::Result;
use testing::need;
use wakewalk_collect::probes::Probe as _;
use wakewalk_collect::probes::Room;
use wakewalk_collect::probes::ledger::Ledger;
use wakewalk_collect::probes::wakeups::{Birth, Counts, Wakeup, Wakeups};
use wakewalk_collect::proc::Proc;

const ROLE: &str = "WAKEWALK_TEST_ROLE";
const LETTERS: u64 = 40;
/// The role of one that serves a client of the listening socket that is its standard input.
const SERVE: &str = "serve";
/// The role of one that starts a thread for each letter, which passes it on.
const THREADS: &str = "threads";
/// The role of one that has children before it is looked at, and waits for their ends.
const PARENT: &str = "parent";
/// What such a thread waits, once.
const NAP: Duration = Duration::from_millis(5);
/// A wakeup that falls on a task which the kernel keeps from tracepoints is shown to nobody. Hosts with a supervisor of that
/// kind hide one in a hundred: a try that misses some is repeated.
const TRIES: usize = 5;

#[test]
#[ignore = "not a test: what the child runs"]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    // SAFETY: no pointers; the child is to end with the thread that started it.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let mut letter = [0];
    match role.split_once(' ') {
        None if role == THREADS => {
            while std::io::stdin().read_exact(&mut letter).is_ok() {
                spawn(nap).join().unwrap();
            }
        }
        None if role == PARENT => wait_for_children(),
        None if role == SERVE => {
            let listener = TcpListener::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
            let mut client = listener.accept().unwrap().0;
            while client.read_exact(&mut letter).is_ok() {}
        }
        None => while std::io::stdin().read_exact(&mut letter).is_ok() {},
        Some((call, port)) => {
            let mut socket = TcpStream::connect((Ipv6Addr::LOCALHOST, port.parse().unwrap())).unwrap();
            while wait_for(&socket, call) && socket.read_exact(&mut letter).is_ok() {}
        }
    }
}

/// The life of a thread that is there for one letter.
fn nap() {
    sleep(NAP);
    stdout().write_all(b"x").and_then(|()| stdout().flush()).unwrap();
}

/// Each letter that comes is the end of one child.
fn wait_for_children() {
    let child = |_| Command::new("sh").args(["-c", "read x"]).spawn().unwrap();
    let _children: Vec<Child> = (0..LETTERS).map(child).collect();
    // SAFETY: the kernel writes nothing where there is no pointer.
    while unsafe { libc::wait(std::ptr::null_mut()) } > 0 {}
}

/// Blocks until there is something to read; false = it failed.
fn wait_for(socket: &TcpStream, call: &str) -> bool {
    let fd = socket.as_raw_fd();
    if call == "poll" {
        let mut set = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, as is said.
        return unsafe { libc::poll(&raw mut set, 1, -1) } == 1;
    }
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
    // SAFETY: the event outlives the calls; the descriptors are open. Each round leaks an epoll, of a few.
    unsafe {
        let epoll = libc::epoll_create1(0);
        libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event);
        libc::epoll_wait(epoll, &raw mut event, 1, -1) == 1
    }
}

/// A child with a role; what it says is not shown.
fn child(role: &str) -> Child {
    child_between(role, Stdio::piped(), Stdio::null())
}

fn child_between(role: &str, from: Stdio, to: Stdio) -> Child {
    let me = std::env::current_exe().unwrap();
    let mut command = Command::new(me);
    command.args(["--exact", "role", "--ignored"]).env(ROLE, role).stdin(from).stdout(to);
    let child = command.spawn().unwrap();
    sleep(Duration::from_millis(300));
    child
}

/// One letter after the other, each of which ends a wait.
fn send_letters(to: &mut impl Write) {
    for _ in 0..LETTERS {
        sleep(Duration::from_millis(5));
        to.write_all(b"x").unwrap();
    }
    sleep(Duration::from_millis(50));
}

fn end(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The socket behind a wait in epoll or poll is the one that ends it, with its peer.
#[test]
fn a_wait_for_readiness_has_its_socket() {
    for (call, number) in [("epoll", libc::SYS_epoll_wait), ("poll", libc::SYS_poll)] {
        let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let ledger = need!(Ledger::load(&mut a));
        let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut child = child(&format!("{call} {port}"));
        let mut connection = listener.accept().unwrap().0;
        ledger.seed(&[child.id()]).unwrap();
        let wakeups = Wakeups::load(&mut b, &ledger).unwrap();
        send_letters(&mut connection);
        let rows = wakeups.rows().unwrap().0;
        end(&mut child);
        let is_wait = |row: &&Wakeup| row.sleeper.tgid == child.id() && i64::from(row.sleeper.syscall) == number;
        let waits: Vec<&Wakeup> = rows.iter().filter(is_wait).collect();
        assert!(waits.len() > 1, "{call}: {:?}", wakeups.counts());
        // The first one had begun before: what a poll is for, nobody but the thread itself can read.
        for row in &waits[1..] {
            let ports = &row.sleeper.ports;
            assert_eq!((i32::from(ports.family), ports.remote), (libc::AF_INET6, port), "{call}: {row:?}");
            assert_eq!(ports.peer, Ipv6Addr::LOCALHOST.octets(), "{call}: {row:?}");
            assert_eq!((row.fd_kind, row.waker.ports.local), ("socket", port), "{call}: {row:?}");
        }
    }
}

/// A client that asks for something ends no wait that a walk would explain: nobody needs to know what it does.
#[test]
fn clients_of_the_target_are_not_followed() {
    let followed = |told: bool| -> Result<bool> {
        let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let ledger = Ledger::load(&mut a)?;
        let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let mut child = child_between(SERVE, OwnedFd::from(listener).into(), Stdio::null());
        let mut connection = TcpStream::connect(address).unwrap();
        let mut wakeups = Wakeups::load(&mut b, &ledger).unwrap();
        if told {
            wakeups.listen([&format!("tcp {address}")]);
        }
        ledger.seed(&[child.id()]).unwrap();
        send_letters(&mut connection);
        let rows = wakeups.rows().unwrap().0;
        end(&mut child);
        let me = std::process::id();
        assert!(
            rows.iter().any(|row| row.sleeper.tgid == child.id() && row.waker.tgid == me),
            "{:?}",
            wakeups.counts()
        );
        Ok(rows.iter().any(|row| row.sleeper.tgid == me))
    };
    assert!(!need!(followed(true)));
    assert!(need!(followed(false)), "as long as its port is not known, it may be anybody");
}

/// Waits of threads that nap once, and what was counted meanwhile.
#[derive(Default)]
struct Naps {
    rows: Vec<Wakeup>,
    births: Vec<Birth>,
    counts: Counts,
}

impl Naps {
    /// Has this child's threads nap for so many letters; waits for the last of them, for two seconds at most.
    fn of(child: &mut Child, letters: u64, wakeups: &Wakeups<'_>) -> Self {
        let mut naps = Self::default();
        let mut pipe = child.stdin.take().unwrap();
        for _ in 0..letters {
            pipe.write_all(b"x").unwrap();
            naps.read(child.id(), wakeups);
        }
        let until = Instant::now() + Duration::from_secs(2);
        while !naps.are_complete() && Instant::now() < until {
            naps.read(child.id(), wakeups);
        }
        naps
    }

    fn read(&mut self, pid: u32, wakeups: &Wakeups<'_>) {
        let is_nap = |row: &Wakeup| i64::from(row.sleeper.syscall) == libc::SYS_clock_nanosleep;
        sleep(2 * NAP);
        let (rows, births) = wakeups.rows().unwrap();
        self.rows.extend(rows.into_iter().filter(|row| row.sleeper.tgid == pid && is_nap(row)));
        self.births.extend(births);
        self.counts = wakeups.counts().unwrap();
    }

    /// Rows are put off where others take all turns.
    fn are_complete(&self) -> bool {
        self.rows.len() as u64 + self.counts.put_off >= LETTERS
    }
}

/// The first try in which no nap is missing; fails where the kernel refuses the probe.
fn complete(mut naps: impl FnMut() -> Result<Naps>) -> Result<Naps> {
    for _ in 0..TRIES {
        let naps = naps()?;
        if naps.are_complete() {
            return Ok(naps);
        }
        eprintln!("{} of {LETTERS} naps: {:?}", naps.rows.len(), naps.counts);
    }
    panic!("naps were missing {TRIES} times");
}

/// A thread for each request waits once in its life: that wait counts like any other.
#[test]
fn the_only_wait_of_a_short_life_is_known() {
    let naps = need!(complete(naps_of_the_target));
    assert!(naps.rows.len() as u64 <= LETTERS, "{} {:?}", naps.rows.len(), naps.counts);
    for row in naps.rows {
        assert!(row.wait_ns <= row.blocked_ns && row.wait_ns + row.run_queue_ns > 4_000_000, "{row:?}");
        assert_eq!(row.at_ns - row.since_ns, row.blocked_ns + row.cpu_ns + row.run_queue_ns, "{row:?}");
        // In a burst, it is told by whom its thread was started, and when.
        let birth = naps.births.iter().find(|birth| birth.tid == row.sleeper.tid).unwrap();
        assert_eq!((birth.tgid, birth.parent_tgid), (row.sleeper.tgid, row.sleeper.tgid), "{birth:?}");
        assert!(birth.parent_tid != birth.tid && birth.at_ns.abs_diff(row.since_ns) < 1_000_000, "{birth:?} {row:?}");
    }
}

fn naps_of_the_target() -> Result<Naps> {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a)?;
    let mut child = child(THREADS);
    ledger.seed(&[child.id()]).unwrap();
    let wakeups = Wakeups::load(&mut b, &ledger).unwrap();
    wakeups.bursts().unwrap().begin(100 * LETTERS as i64).unwrap();
    let naps = Naps::of(&mut child, LETTERS, &wakeups);
    end(&mut child);
    Ok(naps)
}

/// A process outside the target that starts a thread for each answer: what that thread waits for is known as well.
#[test]
fn threads_that_answer_once_are_followed_from_their_birth() {
    let naps = need!(complete(naps_behind_the_target));
    assert!(naps.counts.followed > LETTERS / 2 && naps.counts.not_followed == 0, "{:?}", naps.counts);
    for row in naps.rows {
        assert!(row.wait_ns <= row.blocked_ns && row.wait_ns + row.run_queue_ns > 4_000_000, "{row:?}");
    }
}

fn naps_behind_the_target() -> Result<Naps> {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = Ledger::load(&mut a)?;
    let mut target = child("read");
    let mut other = child_between(THREADS, Stdio::piped(), Stdio::from(target.stdin.take().unwrap()));
    ledger.seed(&[target.id()]).unwrap();
    // Room for half of them: those that have ended make it.
    let room = Room::OneIn(4096 / (LETTERS as u32 / 2));
    let wakeups = Wakeups::load_in(&mut b, &ledger, None, room, &[]).unwrap();
    // The length of the target's first wait is not known: the second answer is where the other process is met.
    let naps = Naps::of(&mut other, LETTERS + 2, &wakeups);
    end(&mut target);
    end(&mut other);
    Ok(naps)
}

/// Whoever ended a wait of the target is not followed for good: half a host would be, by and by.
#[test]
fn a_waker_is_followed_for_a_while() {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = need!(Ledger::load(&mut a));
    let mut child = child("read");
    ledger.seed(&[child.id()]).unwrap();
    let mut wakeups = Wakeups::load(&mut b, &ledger).unwrap();
    let while_ns = 100_000_000;
    wakeups.follow_for(Duration::from_nanos(while_ns));
    let mut pipe = child.stdin.take().unwrap();
    let mut rows = Vec::new();
    for time in 0..2 {
        for _ in 0..LETTERS / 2 {
            sleep(Duration::from_millis(5));
            pipe.write_all(b"x").unwrap();
        }
        // Our own waits, which lead to nobody any more.
        (0..60).for_each(|_| sleep(Duration::from_millis(5)));
        rows.extend(wakeups.rows().unwrap().0);
        let ours = rows.iter().filter(|row| row.sleeper.tgid == std::process::id()).count();
        assert!(ours > time, "followed again: {:?}", wakeups.counts());
    }
    end(&mut child);
    let mine = |row: &&Wakeup| row.sleeper.tgid == std::process::id();
    let led: Vec<u64> = rows.iter().filter(|row| row.sleeper.tgid == child.id()).map(|row| row.at_ns).collect();
    let before = |at: u64| led.iter().copied().filter(|led| *led <= at).max().unwrap_or(0);
    for row in rows.iter().filter(mine) {
        assert!(row.at_ns - before(row.at_ns) <= while_ns, "{row:?}");
    }
    let last = rows.iter().filter(mine).map(|row| row.at_ns).max().unwrap();
    assert!(last < led.iter().max().unwrap() + while_ns && led.len() as u64 > LETTERS / 4, "{led:?}");
}

/// A thread that ends wakes its parent when the hook of its end is behind it: if it were followed then, nobody would make room
/// again.
#[test]
fn who_wakes_by_its_end_is_not_followed() {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = need!(Ledger::load(&mut a));
    let mut parent = child(PARENT);
    let proc = Proc::new(Path::new("/"));
    let is_child = |pid: &u32| proc.stat(*pid).is_some_and(|stat| stat.ppid == parent.id().cast_signed());
    let until = Instant::now() + Duration::from_secs(30);
    while (proc.pids().iter().filter(|pid| is_child(pid)).count() as u64) < LETTERS {
        assert!(Instant::now() < until, "its children do not come");
        sleep(Duration::from_millis(20));
    }
    ledger.seed(&[parent.id()]).unwrap(); // and not its children
    let wakeups = Wakeups::load(&mut b, &ledger).unwrap();
    let mut pipe = parent.stdin.take().unwrap();
    for _ in 0..LETTERS {
        sleep(Duration::from_millis(5));
        pipe.write_all(b"\n").unwrap();
    }
    sleep(Duration::from_millis(50));
    let rows = wakeups.rows().unwrap().0;
    let counts = wakeups.counts().unwrap();
    end(&mut parent);
    let by_child = |row: &&Wakeup| row.sleeper.tgid == parent.id() && row.waker.tgid != parent.id();
    let ends = rows.iter().filter(by_child).filter(|row| i64::from(row.sleeper.syscall) == libc::SYS_wait4).count();
    assert!(ends as u64 > LETTERS / 2, "{ends} {counts:?}");
    assert!(counts.followed < LETTERS / 4 && counts.not_followed == 0, "{counts:?}");
}

/// One wait of the child, which this process ended.
fn check(row: &Wakeup, me: u32) {
    assert!(row.waker.tgid == me && row.context == "thread", "{row:?}");
    assert_eq!(i64::from(row.sleeper.syscall), libc::SYS_read);
    assert_eq!(i64::from(row.waker.syscall), libc::SYS_write);
    assert!(row.fd_kind == "pipe" && row.sleeper.ports.family == 0, "{row:?}");
    // On a full host it spends a part of the time between two letters in the queue of a CPU.
    assert!(row.wait_ns > 0 && row.wait_ns + row.run_queue_ns > 3_000_000, "{row:?}");
    assert!(row.blocked_ns >= row.wait_ns, "{row:?}");
    assert!(row.since_ns < row.at_ns && row.sleeper.stack != 0 && row.waker.stack != 0, "{row:?}");
    let wall = row.at_ns - row.since_ns;
    assert_eq!(wall, row.blocked_ns + row.cpu_ns + row.run_queue_ns, "{row:?}");
}

#[test]
fn every_wait_has_its_length_its_place_and_its_waker() {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let ledger = need!(Ledger::load(&mut a));
    let mut child = child("read");
    ledger.seed(&[child.id()]).unwrap();
    let mut wakeups = Wakeups::load(&mut b, &ledger).unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut rows = Vec::new();
    for _ in 0..LETTERS {
        sleep(Duration::from_millis(5));
        pipe.write_all(b"x").unwrap();
        rows.extend(wakeups.rows().unwrap().0);
    }
    sleep(Duration::from_millis(50));
    wakeups.detach();
    rows.extend(wakeups.rows().unwrap().0);
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
