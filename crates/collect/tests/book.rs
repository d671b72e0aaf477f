// SPDX-License-Identifier: Apache-2.0
//! The ledger's arithmetic against threads whose time is known: any order of switches and wakeups, with events that the
//! kernel keeps to itself and looks at any moment, keeps the sum.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use fastrand::Rng;

/// The scheduler's clock runs beside ours.
const OTHER_CLOCK: u64 = 123_456;

/// Ledger lines, ns.
#[derive(Debug)]
struct Sums {
    wall: u64,
    cpu: u64,
    run_queue: u64,
    preempted: u64,
    throttled: u64,
    blocked: u64,
    interrupted: u64,
}

impl Sums {
    fn parse(line: &str) -> Self {
        let n: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        let [wall, cpu, run_queue, preempted, throttled, blocked, interrupted] = n[..] else { panic!("{line}") };
        Self { wall, cpu, run_queue, preempted, throttled, blocked, interrupted }
    }

    fn lines(&self) -> u64 {
        self.cpu + self.run_queue + self.preempted + self.throttled + self.blocked + self.interrupted
    }
}

/// A thread's life as a script for the C side, and the truth about it.
#[derive(Default)]
struct Life {
    script: String,
    now: u64,
    /// `sum_exec_runtime`, `run_delay`, `last_arrival`, `last_queued`.
    counters: [u64; 4],
    blocked: u64,
    queued: u64,
    stolen: u64,
    /// When each line of output was asked for.
    asked_at: Vec<u64>,
}

impl Life {
    fn begin() -> Self {
        let mut life = Self { now: 1_000_000, ..Self::default() };
        life.task(false);
        writeln!(life.script, "new {}", life.now).unwrap();
        life
    }

    fn task(&mut self, runnable: bool) {
        let [exec, delay, arrival, queued] = self.counters;
        writeln!(self.script, "task {exec} {delay} {arrival} {queued} {}", u8::from(runnable)).unwrap();
    }

    fn ask(&mut self, what: &str) {
        let mut words = what.split(' ');
        let (verb, how) = (words.next().unwrap(), words.next().unwrap_or_default());
        writeln!(self.script, "{verb} {} {how}", self.now).unwrap();
        self.asked_at.push(self.now);
    }

    fn wait_blocked(&mut self, ns: u64) {
        self.now += ns;
        self.blocked += ns;
    }

    fn wait_queued(&mut self, ns: u64) {
        self.counters[3] = self.now - OTHER_CLOCK;
        self.task(true);
        self.now += ns;
        self.queued += ns;
    }

    fn arrive(&mut self, queued: u64, seen: bool) {
        if seen {
            writeln!(self.script, "arrive {}", self.now).unwrap();
        }
        self.counters[1] += queued;
        self.counters[2] = self.now - OTHER_CLOCK;
        self.counters[3] = 0;
    }

    /// Runs, while interrupts or the hypervisor take a part of it.
    fn run(&mut self, cpu: u64, stolen: u64) {
        self.now += cpu + stolen;
        self.counters[0] += cpu;
        self.stolen += stolen;
        self.task(true);
    }
}

/// One random life; of 10 arrivals, and of 10 leaves, so many are not seen.
fn live(rng: &mut Rng, stays: usize, hidden: (u8, u8), stolen: u64) -> Life {
    let mut life = Life::begin();
    let mut blocks = true;
    for _ in 0..stays {
        if blocks {
            life.wait_blocked(rng.u64(1..5_000_000));
        }
        if rng.bool() {
            life.ask("read");
        }
        let queued = rng.u64(0..300_000);
        life.wait_queued(queued);
        if rng.bool() {
            life.ask("read");
        }
        life.arrive(queued, rng.u8(0..10) >= hidden.0);
        life.run(rng.u64(1..2_000_000), rng.u64(0..=stolen));
        if rng.bool() {
            life.ask("read");
        }
        blocks = rng.bool();
        if rng.u8(0..10) >= hidden.1 {
            life.ask(if blocks { "leave blocked" } else { "leave preempted" });
        }
        if blocks {
            life.task(false);
        }
    }
    life.arrive(0, true);
    life.run(1, 0);
    life.ask("leave blocked");
    life
}

/// What the C side makes of lives, one after the other.
fn told(program: &std::path::Path, lives: &[Life]) -> Vec<Vec<Sums>> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let script: String = lives.iter().map(|l| l.script.as_str()).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()).unwrap());
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(out.status.success(), "{:?}", out.status);
    let mut lines = std::str::from_utf8(&out.stdout).unwrap().lines().map(Sums::parse);
    lives.iter().map(|l| lines.by_ref().take(l.asked_at.len()).collect()).collect()
}

fn build(folder: &std::path::Path) -> std::path::PathBuf {
    let program = folder.join("book");
    let root = env!("CARGO_MANIFEST_DIR");
    let built = Command::new("clang")
        .args(["-O1", "-g", "-Wall", "-Werror", "-fsanitize=undefined", "-fsanitize-trap=all"])
        .args(["-I/usr/include/x86_64-linux-gnu", &format!("-I{root}/bpf")])
        .arg("-o")
        .arg(&program)
        .arg(format!("{root}/tests/book/host.c"))
        .status()
        .unwrap();
    assert!(built.success(), "clang is needed: try `make install-deps`");
    program
}

#[test]
fn any_order_of_events_keeps_the_sum() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path());
    for seed in 0..2000 {
        let mut rng = Rng::with_seed(seed);
        let hidden = [(0, 0), (rng.u8(1..6), 0), (rng.u8(0..6), rng.u8(1..6))][seed as usize % 3];
        let stolen = if seed % 2 == 0 { 0 } else { rng.u64(1..500_000) };
        let stays = rng.usize(1..40);
        let life = live(&mut rng, stays, hidden, stolen);
        let start = 1_000_000;
        let sums = told(&program, std::slice::from_ref(&life)).remove(0);
        for (sum, at) in sums.iter().zip(&life.asked_at) {
            assert_eq!((sum.wall, sum.lines()), (at - start, sum.wall), "seed {seed}: {sum:?}");
        }
        let last = sums.last().unwrap();
        assert_eq!(last.cpu, life.counters[0], "seed {seed}");
        // A stay whose beginning nobody saw is as long as its CPU time: what was stolen in it cannot be told.
        if hidden == (0, 0) || hidden.1 == 0 && stolen == 0 {
            let truth = (life.blocked, life.queued, life.stolen);
            assert_eq!(
                (last.blocked, last.run_queue + last.preempted, last.interrupted),
                truth,
                "seed {seed}: {last:?}"
            );
        }
    }
}
