// SPDX-License-Identifier: Apache-2.0
//! Prints what a stack costs: the first one of a process, one more, and the names at the end.
//! For engineers who change the unwinder; it checks nothing.

#[allow(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/unwind/programs.rs"]
mod programs;
#[allow(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/unwind/stop.rs"]
mod stop;

use std::{hint::black_box, os::unix::fs::FileExt, process::Command, time::Instant};

use wakewalk_stacks::{Effort, KernelNames, Snapshot, Stacks};

const REPEATS: u32 = 20_000;

fn main() {
    let c = programs::c(r#"int main(void) { puts("ready"); fflush(stdout); spin_forever(); }"#, &[]);
    let node = "console.log('ready'); function f(n) { let s = 0; for (let i = 0; i < 1e5; i++) s += i % n; return s } for (;;) f(7)";
    let python = "print('ready', flush=True)\ndef f(n): return sum(i % 7 for i in range(n))\nwhile True: f(1000)";
    measure("C", &mut c.command());
    measure("Node", Command::new("node").args(["-e", node]));
    measure("Python", Command::new("python3").args(["-c", python]));
}

fn measure(name: &str, command: &mut Command) {
    stop::start(command).sample_with(3, |stacks, pid, regs, mem| {
        let mut stack = vec![0; 32 << 10];
        let length = mem.read_at(&mut stack, regs.sp).unwrap_or(0);
        let snapshot = Snapshot { pid, regs: *regs, stack: &stack[..length] };
        let mut fresh = Stacks::new();
        let start = Instant::now();
        let unwound = fresh.user(&snapshot);
        let first = start.elapsed();
        let start = Instant::now();
        for _ in 0..REPEATS {
            let unwound = black_box(&mut fresh).user(black_box(&snapshot));
            fresh.intern(&[], &unwound.frames, unwound.complete);
        }
        let more = start.elapsed() / REPEATS;
        let start = Instant::now();
        let names = fresh.fresh(Effort::All, &mut KernelNames::List).1.len();
        let finish = start.elapsed();
        let frames = unwound.frames.len();
        println!("{name}: {frames} frames, first {first:?}, each more {more:?}, {names} names {finish:?}");
        stacks.user(&snapshot)
    });
}
