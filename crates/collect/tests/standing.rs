// SPDX-License-Identifier: Apache-2.0
//! Waits that go on when a capture ends: of threads of this process that stand before each other's mutexes, one of them with a request
//! in hand, and of the client that waits for its answer. Needs root; see `kernel_allows`.

#![allow(unsafe_code, clippy::unwrap_used)] // mutexes of the C library keep their owner; those of the standard library do not

use std::cell::UnsafeCell;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::id;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread::{Builder, park, spawn};
use std::time::Duration;

use recording::tables::{Frame, Gap, Loss, Stack, Standing};
use recording::{Meta, Sink, Slice, Tables};
use testing::need;
use wakewalk_collect::capture::{self, CallCounting, Plan, Role, SLICE};
use wakewalk_collect::probes::Room;
use wakewalk_collect::probes::ledger::Ledger;
use wakewalk_collect::target::Target;

fn kernel_allows() -> anyhow::Result<()> {
    Ledger::load(&mut MaybeUninit::uninit()).map(drop)
}

/// What was captured, and whom to tell when it begins.
struct Seen {
    begin: Sender<()>,
    tables: Tables,
}

impl Sink for Seen {
    fn describe(&mut self, _: &Meta) -> anyhow::Result<()> {
        Ok(())
    }

    fn put(&mut self, slice: Slice) -> anyhow::Result<()> {
        self.begin.send(()).ok();
        self.tables.extend(slice.tables.rows::<Standing>().iter().cloned());
        self.tables.extend(slice.tables.rows::<Stack>().iter().cloned());
        self.tables.extend(slice.tables.rows::<Frame>().iter().cloned());
        self.tables.extend(slice.tables.rows::<Gap>().iter().cloned());
        self.tables.extend(slice.tables.rows::<Loss>().iter().cloned());
        Ok(())
    }

    fn rows(&self) -> u64 {
        0
    }

    fn seal(&mut self, _: &Meta) -> anyhow::Result<()> {
        Ok(())
    }
}

struct Mutex(UnsafeCell<libc::pthread_mutex_t>);
// SAFETY: a mutex is made to be used by several threads.
unsafe impl Sync for Mutex {}

impl Mutex {
    const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    fn lock(&self) {
        // SAFETY: it lives as long as the process.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.0.get()) }, 0);
    }
}

/// Threads without work, more than there are rows for.
const IDLE: usize = 1_200;

static FIRST: Mutex = Mutex::new();
static SECOND: Mutex = Mutex::new();

fn tid() -> u32 {
    // SAFETY: no pointers.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Starts who stands; tells their threads: who has read a request, who has the other mutex, and the client.
fn stand(listener: TcpListener, sent: Sender<u32>) {
    let (port, both) = (listener.local_addr().unwrap().port(), Arc::new(Barrier::new(2)));
    let other = Arc::clone(&both);
    let idle = || drop(Builder::new().stack_size(64 << 10).spawn(park).unwrap());
    let tell = [sent.clone(), sent.clone(), sent];
    let [one, two, three] = tell;
    spawn(move || {
        let mut client = listener.accept().unwrap().0;
        client.read_exact(&mut [0]).unwrap();
        FIRST.lock();
        one.send(tid()).unwrap();
        both.wait();
        SECOND.lock();
    });
    spawn(move || {
        SECOND.lock();
        two.send(tid()).unwrap();
        other.wait();
        FIRST.lock();
    });
    spawn(move || {
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.write_all(b"x").unwrap();
        three.send(tid()).unwrap();
        client.read_exact(&mut [0]).ok();
    });
    (0..IDLE).for_each(|_| idle());
}

#[test]
fn threads_that_stand_with_requests_owners_and_stacks() {
    need!(kernel_allows());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = u32::from(listener.local_addr().unwrap().port());
    let root = PathBuf::from("/");
    let plan = Plan {
        target: Target::Pid(id()).resolve(&root).unwrap(),
        length: Duration::from_secs(4),
        slice: SLICE,
        calls: CallCounting::Never,
        labels: false,
        role: Role::Service,
        slo: None,
        root,
        tool: "test".into(),
        room: Room::Whole,
    };
    let ((begin, begun), (sent, threads)) = (channel(), channel());
    spawn(move || begun.recv().map(|()| stand(listener, sent)));
    let mut seen = Seen { begin, tables: Tables::default() };
    capture::run(&plan, &mut seen, &AtomicBool::new(false), &mut |_| {}).unwrap();
    let rows = seen.tables.rows::<Standing>();
    // An idle pool, however large, is no event that was lost.
    let lost: Vec<&Loss> = seen.tables.rows::<Loss>().iter().filter(|loss| loss.what.contains("waits that")).collect();
    let gaps: Vec<&Gap> = seen.tables.rows::<Gap>().iter().filter(|gap| gap.what == "standing").collect();
    assert!(rows.len() == 1_000 && lost.is_empty() && gaps.is_empty(), "{} {lost:?} {gaps:?}", rows.len());
    let told: Vec<u32> = threads.try_iter().collect();
    let of = |tid: &u32| rows.iter().find(|row| row.tid == *tid).cloned();
    let standing: Vec<Standing> = told.iter().filter_map(of).collect();
    assert_eq!(standing.len(), 3, "{told:?} {rows:?}");
    let reader = standing.iter().find(|row| row.requests > 0).unwrap();
    let keeper = standing.iter().find(|row| row.tid == reader.owner).unwrap();
    let client = standing.iter().find(|row| row.remote_port == port).unwrap();
    assert_eq!((reader.requests, keeper.requests, keeper.owner), (1, 0, reader.tid));
    assert!(reader.request_ns >= reader.wait_ns && reader.args[2] == 2 && reader.wait_ns > 500_000_000, "{reader:?}");
    assert_eq!((client.fd_kind.as_str(), client.owner, client.peer.as_str()), ("socket", 0, "127.0.0.1"));
    let stack = seen.tables.rows::<Stack>().iter().find(|stack| stack.id == reader.user_stack).unwrap();
    let names = seen.tables.rows::<Frame>().iter().filter(|frame| stack.frames.contains(&frame.id));
    let names: Vec<&str> = names.map(|frame| frame.symbol.as_str()).collect();
    assert!(names.iter().any(|name| name.contains("mutex_lock") || name.contains("lll_lock_wait")), "{names:?}");
}
