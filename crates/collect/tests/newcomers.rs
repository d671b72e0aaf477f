// SPDX-License-Identifier: Apache-2.0
//! Who is of the target and came when it was watched already: threads that the kernel makes for it, and processes that enter its
//! cgroup from outside. Needs root; see `kernel_allows`.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::fs;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, id};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use recording::tables::{Process, Thread};
use recording::{Meta, Sink, Slice};
use testing::{need, need_of_host};
use wakewalk_collect::capture::{self, CallCounting, Plan, Role};
use wakewalk_collect::probes::Room;
use wakewalk_collect::probes::ledger::Ledger;
use wakewalk_collect::target::Target;

/// Bound of every wait for the kernel; reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

fn kernel_allows() -> anyhow::Result<()> {
    Ledger::load(&mut MaybeUninit::uninit()).map(drop)
}

/// A ring with a thread of the kernel's that polls its submissions; the descriptor, or why there is none.
#[allow(unsafe_code, reason = "the standard library knows no io_uring")]
fn polled_ring() -> std::io::Result<i32> {
    const SQPOLL: u32 = 1 << 1;
    const PARAMETERS: usize = 30; // of 32 bits: entries, flags, and what the kernel fills in
    let mut parameters = [0u32; PARAMETERS];
    parameters[2] = SQPOLL;
    // SAFETY: the parameters are as large as the kernel's struct, and live through the call.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) };
    i32::try_from(ring).ok().filter(|ring| *ring >= 0).ok_or_else(std::io::Error::last_os_error)
}

#[test]
fn threads_that_the_kernel_makes_for_the_target() {
    need!(kernel_allows());
    let mut slot = MaybeUninit::uninit();
    let mut ledger = Ledger::load(&mut slot).unwrap();
    ledger.seed(&[id()]).unwrap();
    need_of_host!(polled_ring().map(drop)); // closed with the test
    // It has its own name once it has run.
    let until = Instant::now() + PATIENCE;
    let is_there = |ledger: &mut Ledger<'_>| {
        ledger.read(false).unwrap().iter().any(|row| row.tgid == id() && row.comm.starts_with("iou-sqp"))
    };
    while !is_there(&mut ledger) {
        assert!(Instant::now() < until, "the thread that polls submissions is not watched");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A cgroup of its own, which is removed when the test ends.
struct Cgroup(PathBuf);

impl Cgroup {
    fn make() -> std::io::Result<Self> {
        // Of version 2, or else of one of the trees of version 1.
        let root = Path::new("/sys/fs/cgroup");
        let tree = if root.join("cgroup.procs").exists() { root.to_path_buf() } else { root.join("cpuacct") };
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = tree.join(format!("wakewalk-test-{}-newcomers-{number}", id()));
        fs::create_dir(&path).map(|()| Self(path))
    }

    /// A process that somebody else starts and puts into it.
    fn with_sleep(&self) -> Child {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        fs::write(self.0.join("cgroup.procs"), child.id().to_string()).unwrap();
        child
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let until = Instant::now() + PATIENCE;
        while fs::remove_dir(&self.0).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Who was told, and when as a slice ends one comes to `cgroup`.
struct Seen<'c> {
    cgroup: &'c Cgroup,
    /// Ends before the other comes.
    first: Option<Child>,
    ended: String,
    late: Option<Child>,
    processes: HashSet<u32>,
    threads: HashSet<u32>,
}

impl<'c> Seen<'c> {
    fn of(cgroup: &'c Cgroup) -> Self {
        let (processes, threads) = (HashSet::new(), HashSet::new());
        Self { cgroup, first: None, ended: String::new(), late: None, processes, threads }
    }
}

impl Sink for Seen<'_> {
    fn describe(&mut self, _: &Meta) -> anyhow::Result<()> {
        Ok(())
    }

    fn put(&mut self, slice: Slice) -> anyhow::Result<()> {
        self.processes.extend(slice.tables.rows::<Process>().iter().map(|row| row.pid));
        self.threads.extend(slice.tables.rows::<Thread>().iter().map(|row| row.pid));
        if let Some(mut first) = self.first.take_if(|_| slice.range.end > 0) {
            first.kill()?;
            first.wait()?;
        } else if self.first.is_none() {
            self.late.get_or_insert_with(|| self.cgroup.with_sleep());
        }
        Ok(())
    }

    fn rows(&self) -> u64 {
        0
    }

    fn seal(&mut self, meta: &Meta) -> anyhow::Result<()> {
        self.ended.clone_from(&meta.ended);
        Ok(())
    }
}

fn plan(cgroup: &Cgroup) -> Plan {
    let root = Path::new("/");
    Plan {
        target: Target::Cgroup(cgroup.0.clone()).resolve(root).unwrap(),
        length: Duration::from_millis(1500),
        slice: Duration::from_millis(300),
        calls: CallCounting::Never,
        labels: false,
        role: Role::Service,
        slo: None,
        root: root.into(),
        tool: "test".into(),
        room: Room::Whole,
    }
}

#[test]
fn processes_that_enter_the_cgroup() {
    need!(kernel_allows());
    let cgroup = need_of_host!(Cgroup::make());
    let mut first = cgroup.with_sleep();
    let plan = plan(&cgroup);
    let mut seen = Seen::of(&cgroup);
    let captured = capture::run(&plan, &mut seen, &AtomicBool::new(false), &mut |_| {});
    let mut late = seen.late.take().unwrap();
    for child in [&mut first, &mut late] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    captured.unwrap();
    assert!(seen.threads.contains(&late.id()) && seen.processes.contains(&late.id()), "{:?}", seen.processes);
    assert!(!seen.threads.contains(&id()), "whoever put it there is none of them");
}

/// As a service does that is started again.
#[test]
fn a_cgroup_is_watched_on_when_all_in_it_have_ended() {
    need!(kernel_allows());
    let cgroup = need_of_host!(Cgroup::make());
    let first = cgroup.with_sleep();
    let plan = plan(&cgroup);
    let mut seen = Seen { first: Some(first), ..Seen::of(&cgroup) };
    let captured = capture::run(&plan, &mut seen, &AtomicBool::new(false), &mut |_| {});
    let mut late = seen.late.take().unwrap();
    late.kill().unwrap();
    late.wait().unwrap();
    captured.unwrap();
    assert_eq!(seen.ended, "time");
    assert!(seen.threads.contains(&late.id()), "{:?}", seen.processes);
}
