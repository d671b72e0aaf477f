// SPDX-License-Identifier: Apache-2.0
//! All collectors together, at work on this process: what each took, that each gives up what it can, and that one can be
//! stopped. Needs root; see `kernel_allows`.

#![allow(clippy::unwrap_used)]

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::id;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{available_parallelism, scope, sleep};
use std::time::{Duration, Instant};

use recording::tables::{
    Burst, CallWindow, Connection, Frame, Gap, Loss, Process, Request, Sample, Stack, Thread, Wait,
};
use recording::{Meta, Ring, Sink, Slice, Tables, Writer};
use testing::need;
use wakewalk_collect::capture::{self, Account, CallCounting, Plan, Role, SLICE};
use wakewalk_collect::clock;
use wakewalk_collect::collector::{Shared, SliceEnd, Start};
use wakewalk_collect::collectors::{Spent, Team, slots};
use wakewalk_collect::probes::Room;
use wakewalk_collect::probes::ledger::Ledger;
use wakewalk_collect::target::Target;

fn kernel_allows() -> anyhow::Result<()> {
    Ledger::load(&mut MaybeUninit::uninit()).map(drop)
}

fn plan(calls: CallCounting) -> Plan {
    let root = std::path::PathBuf::from("/");
    Plan {
        target: Target::Pid(id()).resolve(&root).unwrap(),
        length: Duration::from_secs(5),
        slice: SLICE,
        calls,
        labels: false,
        role: Role::Service,
        slo: None,
        root,
        tool: "test".into(),
        room: Room::Whole,
    }
}

/// All collectors, at work on this process, and what the kernel refused.
fn with_team(calls: CallCounting, work: impl FnOnce(&mut Team<'_>, &mut Shared<'_>, &[Gap])) {
    let plan = plan(calls);
    let mut slots = slots();
    let mut slots = slots.iter_mut();
    let ledger = Ledger::load(slots.next().unwrap()).unwrap();
    let (plan, began) = (&plan, clock::since_boot());
    let mut start = Start { plan, ledger: &ledger, began, stack_bytes: 4096, sample_hz: 0, bursts: None };
    let (mut team, gaps) = Team::start(&mut start, slots);
    let mut shared = Shared::new(plan, ledger, clock::monotonic_ns());
    shared.ledger.seed(&[id()]).unwrap();
    work(&mut team, &mut shared, &gaps);
}

#[test]
fn everybody_tells_what_it_took_and_gives_up_what_it_can() {
    need!(kernel_allows());
    with_team(CallCounting::Auto, |team, shared, gaps| {
        let (mut account, from, most) = (Account::start(), Instant::now(), Duration::from_secs(10));
        let (mut spent, mut priced) = (HashMap::<&str, (u64, u64)>::new(), false);
        // The kernel's run statistics come a slice at a time, which a loaded host closes late.
        while from.elapsed() < Duration::from_millis(400) || !priced && from.elapsed() < most {
            team.tick(shared).unwrap();
            account.tick(from.elapsed(), || team.programs(shared));
            for told in team.spent(shared, &mut account, 1).unwrap() {
                let sum = spent.entry(told.gap).or_default();
                *sum = (sum.0 + told.user_ns, sum.1 + told.kernel_ns());
            }
            priced = spent.values().any(|(_, kernel_ns)| *kernel_ns > 0);
            sleep(Duration::from_millis(10));
        }
        assert!(spent["speed"].0 > 0 && spent["thread"].1 > 0, "{spent:?}, {gaps:?}");
        let again: Vec<Spent> = team.spent(shared, &mut account, 1).unwrap();
        let again = again.iter().find(|again| again.gap == "speed").unwrap();
        assert!(again.user_ns < spent["speed"].0 / 2, "each is told once: {again:?}, {spent:?}");

        let steps = [("sample", 3), ("call", 1), ("wakeup", 2), ("counter", 1), ("connection", 3), ("exchange", 4)];
        for (what, steps) in steps.into_iter().chain([("thread", 0)]) {
            if !gaps.iter().any(|gap| gap.what == what) {
                let given = (0..9).take_while(|_| team.shed(what)).count();
                assert_eq!(given, steps, "{what}");
            }
        }
    });
}

/// Computes and ticks for a while, and ends a slice; returns its end.
fn slice(team: &mut Team<'_>, shared: &mut Shared<'_>, tables: &mut Tables) -> u64 {
    let (from, mut ended) = (Instant::now(), Vec::new());
    while from.elapsed() < Duration::from_millis(500) {
        let until = Instant::now() + Duration::from_millis(20);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        sleep(Duration::from_millis(2));
        team.tick(shared).unwrap();
        ended.extend(shared.ledger.events().unwrap());
    }
    let living = shared.ledger.read(false).unwrap();
    let end = SliceEnd { t_ns: clock::monotonic_ns() - shared.start_ns, last: false, living, ended };
    team.read(shared, &end);
    team.slice(shared, &end, tables).unwrap();
    end.t_ns
}

#[test]
fn one_that_is_stopped_leaves_the_rest_at_work() {
    need!(kernel_allows());
    let mut tables = Tables::default();
    let (mut stopped_ns, mut stopped) = (0, Vec::new());
    with_team(CallCounting::Auto, |team, shared, gaps| {
        team.begin(shared, &mut tables).unwrap();
        let mut account = Account::start();
        slice(team, shared, &mut tables);
        team.spent(shared, &mut account, 1).unwrap();
        assert!(!team.stop("thread", shared) && !team.stop("wait", shared), "others build on it");
        stopped.extend(["sample", "wakeup", "exchange", "connection"].into_iter().filter(|gap| team.stop(gap, shared)));
        stopped_ns = clock::monotonic_ns() - shared.start_ns;
        let told: Vec<Gap> = team.gaps(shared, false).unwrap();
        let told: Vec<&str> = told.iter().filter(|gap| !gap.is_refused()).map(|gap| gap.what.as_str()).collect();
        assert!(told == stopped && stopped.len() + gaps.len() >= 4, "{told:?} of {stopped:?}, {gaps:?}");
        slice(team, shared, &mut tables);
        slice(team, shared, &mut tables);
        let spent = team.spent(shared, &mut account, 1).unwrap();
        let runs = |gap: &str| -> u64 {
            let programs = spent.iter().filter(|told| told.gap == gap).flat_map(|told| &told.programs);
            programs.map(|program| program.runs).sum()
        };
        let of_stopped: u64 = stopped.iter().map(|gap| runs(gap)).sum();
        assert!(of_stopped <= 100 && runs("thread") > 50, "nearly all before the hooks were off: {spent:?}");
    });
    let samples = tables.rows::<Sample>();
    assert!(!samples.is_empty() || !stopped.contains(&"sample"));
    assert!(samples.iter().all(|row| row.t_ns <= stopped_ns) && tables.rows::<Burst>().is_empty());
    assert!(tables.rows::<Connection>().iter().all(|row| row.t_ns <= stopped_ns));
    let slices: HashSet<u64> = tables.rows::<Thread>().iter().map(|row| row.t_ns).collect();
    let waits: HashSet<u64> = tables.rows::<Wait>().iter().map(|row| row.t_ns).collect();
    assert_eq!((slices.len(), waits.len()), (3, 3), "the ledger goes on");
}

#[test]
fn slices_are_as_long_as_the_plan_says() {
    need!(kernel_allows());
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&dir.path().join("r"), &Meta::default()).unwrap();
    let (length, slice) = (Duration::from_millis(1900), Duration::from_millis(200));
    let plan = Plan { length, slice, ..plan(CallCounting::Never) };
    capture::run(&plan, &mut writer, &AtomicBool::new(false), &mut |_| {}).unwrap();
    let recording = recording::open(&dir.path().join("r")).unwrap();
    let ends: HashSet<u64> = recording.rows::<Thread>().iter().map(|row| row.t_ns).collect();
    assert!((4..=10).contains(&ends.len()), "slices of a second would be two: {ends:?}");
    let waits: HashSet<u64> = recording.rows::<Wait>().iter().map(|row| row.t_ns).collect();
    assert!(waits.len() >= 4 && waits.is_subset(&ends), "the waits of each are in it: {waits:?}");
}

/// A capture of which only the end is kept, in memory: whole slices, and the names and processes of what is in them.
#[test]
fn a_capture_into_a_ring() {
    need!(kernel_allows());
    let mut ring = Ring::new(3);
    let (length, slice) = (Duration::from_millis(1900), Duration::from_millis(200));
    let plan = Plan { length, slice, ..plan(CallCounting::Never) };
    let is_over = AtomicBool::new(false);
    scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        capture::run(&plan, &mut ring, &AtomicBool::new(false), &mut |_| {}).unwrap();
        is_over.store(true, Ordering::Relaxed);
    });
    let (range, recording) = (ring.range(), ring.recording().unwrap());
    assert!(range.start > 0 && recording.meta.length_ns == range.end - range.start, "{range:?}");
    let ends: HashSet<u64> = recording.rows::<Thread>().iter().map(|row| row.t_ns).collect();
    assert_eq!((ends.len(), ends.iter().max()), (3, Some(&recording.meta.length_ns)), "{ends:?}");
    let stacks: HashMap<u32, &Stack> = recording.rows::<Stack>().iter().map(|stack| (stack.id, stack)).collect();
    let named: HashSet<u32> = recording.rows::<Frame>().iter().map(|frame| frame.id).collect();
    let mut of_samples = recording.rows::<Sample>().iter().filter(|row| row.stack > 0);
    assert!(of_samples.all(|row| stacks[&row.stack].frames.iter().all(|id| named.contains(id))), "all are there");
    assert!(recording.rows::<Process>().iter().any(|process| process.pid == id()) && !stacks.is_empty());
    let spun: u64 = recording.rows::<Thread>().iter().map(|row| row.cpu_ns).sum();
    assert!(spun > 0, "its time is there");
}

/// Each question stands through whole slices in which nobody is answered: the one in which it is answered is told in full.
#[test]
fn who_was_not_answered_for_a_while_is_followed_on() {
    need!(kernel_allows());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let slice = Duration::from_millis(150);
    let plan = Plan { length: slice * 16, slice, ..plan(CallCounting::Never) };
    let (mut ring, is_over) = (Ring::new(40), AtomicBool::new(false));
    scope(|scope| {
        scope.spawn(|| {
            let (mut asking, mut asked) = (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0);
            while !is_over.load(Ordering::Relaxed) {
                asking.write_all(b"question").unwrap();
                sleep(slice * 7 / 2);
                asked.read_exact(&mut [0; 8]).unwrap();
                asked.write_all(b"answered").unwrap();
                asking.read_exact(&mut [0; 8]).unwrap();
            }
        });
        capture::run(&plan, &mut ring, &AtomicBool::new(false), &mut |_| {}).unwrap();
        is_over.store(true, Ordering::Relaxed);
    });
    let recording = ring.recording().unwrap();
    let of_us = recording.rows::<Request>().iter().filter(|row| row.port == u32::from(address.port()));
    let stood: Vec<u64> = of_us.map(|row| row.t_ns - row.began_ns).collect();
    assert!(stood.iter().filter(|ns| **ns >= slice.as_nanos() as u64 * 2).count() >= 2, "{stood:?}");
}

/// A place that has more rows than anybody judges.
#[derive(Default)]
struct Full {
    meta: Meta,
    slices: usize,
}

impl Sink for Full {
    fn describe(&mut self, meta: &Meta) -> anyhow::Result<()> {
        self.meta = meta.clone();
        Ok(())
    }

    fn put(&mut self, _: Slice) -> anyhow::Result<()> {
        self.slices += 1;
        Ok(())
    }

    fn rows(&self) -> u64 {
        u64::MAX
    }

    fn seal(&mut self, meta: &Meta) -> anyhow::Result<()> {
        self.describe(meta)
    }
}

#[test]
fn a_capture_ends_with_as_many_rows_as_are_judged() {
    need!(kernel_allows());
    let mut full = Full::default();
    let plan = Plan { slice: Duration::from_millis(200), ..plan(CallCounting::Never) };
    capture::run(&plan, &mut full, &AtomicBool::new(false), &mut |_| {}).unwrap();
    // What is known when it starts, the slice after which it ended, and what only the end tells.
    assert_eq!((full.meta.ended.as_str(), full.slices), ("budget", 3));
    assert!(full.meta.length_ns < 4_000_000_000, "{:?}", full.meta);
}

/// The rings are emptied every 50 ms, as in a capture, while more threads of this process than there are CPUs compute.
#[test]
fn no_sample_is_lost_while_programs_are_loaded() {
    need!(kernel_allows());
    let mut tables = Tables::default();
    let is_over = AtomicBool::new(false);
    let mut refused = Vec::new();
    scope(|scope| {
        for _ in 0..2 * available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        with_team(CallCounting::Always, |team, shared, gaps| {
            refused = gaps.iter().map(|gap| gap.what.clone()).collect();
            team.begin(shared, &mut tables).unwrap();
            let (mut longest, mut most_ns) = (Duration::ZERO, 0);
            while shared.elapsed() < Duration::from_secs(2) {
                sleep(team.busy_for().unwrap_or(Duration::from_millis(50)));
                let (from, cpu_ns) = (Instant::now(), clock::thread_cpu_ns());
                team.tick(shared).unwrap();
                longest = longest.max(from.elapsed());
                most_ns = most_ns.max(clock::thread_cpu_ns() - cpu_ns);
            }
            println!("longest tick: {longest:?}, {} us of CPU time at most", most_ns / 1_000);
            let living = shared.ledger.read(false).unwrap();
            let t_ns = clock::monotonic_ns() - shared.start_ns;
            let end = SliceEnd { t_ns, last: false, living, ended: Vec::new() };
            team.slice(shared, &end, &mut tables).unwrap();
        });
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(refused.contains(&"call".into()) || !tables.rows::<CallWindow>().is_empty(), "they were loaded");
    let samples = tables.rows::<Loss>().iter().find(|loss| loss.what == "samples");
    assert!(samples.is_none_or(|loss| loss.kept > 0 && loss.count == 0), "{samples:?}");
    assert!(samples.is_some() || refused.contains(&"sample".into()));
}
