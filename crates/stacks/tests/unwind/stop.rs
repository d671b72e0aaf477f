// SPDX-License-Identifier: Apache-2.0
//! Stops a thread of another process and takes what a sample would hold.
#![allow(clippy::unwrap_used, reason = "a test whose program does not run has failed")]

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    os::unix::fs::FileExt,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use nix::{
    sys::{
        ptrace,
        wait::{WaitPidFlag, waitpid},
    },
    unistd::Pid,
};
use wakewalk_stacks::{Effort, KernelNames, Registers, Snapshot, Stacks};

/// Longest that a program is given to get where it should be.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running program that ends with the test.
pub struct Running {
    child: Child,
    /// The process to look at, if it is not the child itself.
    inner: Option<u32>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program and waits until it has written a line that contains `ready`.
pub fn start(command: &mut Command) -> Running {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let running = Running { child, inner: None };
    let ready = BufReader::new(stdout).lines().map_while(Result::ok).any(|line| line.contains("ready"));
    assert!(ready, "{command:?} ended before it was ready");
    running
}

/// The frames of one sample, leaf first.
#[derive(Clone, Debug)]
pub struct Sampled {
    pub names: Vec<String>,
    pub frames: Vec<recording::tables::Frame>,
    pub complete: bool,
}

impl Sampled {
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name)
    }

    /// Are these names there, in this order, with nothing between them?
    pub fn calls(&self, names: &[&str]) -> bool {
        self.names.windows(names.len()).any(|w| w.iter().zip(names).all(|(a, b)| a == b))
    }
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.inner.unwrap_or_else(|| self.child.id())
    }

    /// Looks at the child's only child instead.
    pub fn inner(mut self) -> Self {
        let pid = self.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        self.inner = Some(children.trim().parse().unwrap());
        self
    }

    pub fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Samples the thread that uses the CPU most, `count` times; the process is killed before the
    /// frames are named.
    pub fn sample(self, count: usize, stack_bytes: usize) -> Vec<Sampled> {
        self.sample_with(count, |stacks, pid, regs, mem| {
            let mut stack = vec![0; stack_bytes];
            // Short where the stack ends.
            let length = mem.read_at(&mut stack, regs.sp).unwrap_or(0);
            stacks.user(&Snapshot { pid, regs: *regs, stack: &stack[..length] })
        })
    }

    pub fn sample_with(
        self,
        count: usize,
        take: impl FnMut(&mut Stacks, u32, &Registers, &File) -> wakewalk_stacks::Unwound,
    ) -> Vec<Sampled> {
        self.sample_into(Stacks::new(), count, take)
    }

    pub fn sample_into(
        self,
        mut stacks: Stacks,
        count: usize,
        mut take: impl FnMut(&mut Stacks, u32, &Registers, &File) -> wakewalk_stacks::Unwound,
    ) -> Vec<Sampled> {
        let pid = self.pid();
        let deadline = Instant::now() + PATIENCE;
        // Past what it does to say that it is ready.
        let ready_at = ticks(pid);
        while ticks(pid) < ready_at + 5 && Instant::now() < deadline {
            sleep(Duration::from_millis(10));
        }
        let mut ids = Vec::new();
        while ids.len() < count && Instant::now() < deadline {
            if let Some(tid) = busiest_thread(pid)
                && let Some(stopped) = Stopped::attach(tid)
            {
                // Opened now: the file means the program that runs now.
                let mem = File::open(format!("/proc/{pid}/mem")).unwrap();
                let unwound = take(&mut stacks, pid, &stopped.registers(), &mem);
                ids.push((stacks.intern(&[], &unwound.frames, unwound.complete), unwound.complete));
            }
            sleep(Duration::from_millis(3));
        }
        drop(self);
        let (rows, frames) = stacks.fresh(Effort::All, &mut KernelNames::List);
        let sampled = |(id, complete): (u32, bool)| {
            let row = &rows[id as usize - 1];
            assert_eq!((row.id, row.complete), (id, complete));
            let frames: Vec<_> = row.frames.iter().map(|id| frames[*id as usize - 1].clone()).collect();
            Sampled { names: frames.iter().map(|f| f.symbol.clone()).collect(), frames, complete }
        };
        ids.into_iter().map(sampled).collect()
    }
}

/// A thread held still by this thread's ptrace.
struct Stopped(Pid);

impl Stopped {
    fn attach(tid: u32) -> Option<Stopped> {
        let tid = Pid::from_raw(tid.cast_signed());
        ptrace::attach(tid).ok()?;
        waitpid(tid, Some(WaitPidFlag::__WALL)).ok()?;
        Some(Stopped(tid))
    }

    fn registers(&self) -> Registers {
        let r = ptrace::getregs(self.0).unwrap();
        Registers {
            ip: r.rip,
            sp: r.rsp,
            bp: r.rbp,
            ax: r.rax,
            bx: r.rbx,
            cx: r.rcx,
            dx: r.rdx,
            si: r.rsi,
            di: r.rdi,
            r8: r.r8,
            r9: r.r9,
            r10: r.r10,
            r11: r.r11,
            r12: r.r12,
            r13: r.r13,
            r14: r.r14,
            r15: r.r15,
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = ptrace::detach(self.0, None);
    }
}

/// The thread that runs now and has used the CPU most. One that sleeps says nothing of what uses it.
fn busiest_thread(pid: u32) -> Option<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let running = tasks.filter_map(Result::ok).filter_map(|task| {
        let (state, ticks) = state_and_ticks(&task.path().join("stat"))?;
        (state == "R").then_some((ticks, task.file_name()))
    });
    running.max()?.1.to_str()?.parse().ok()
}

fn ticks(pid: u32) -> u64 {
    state_and_ticks(format!("/proc/{pid}/stat").as_ref()).map_or(0, |(_, ticks)| ticks)
}

/// State, and CPU time in ticks.
fn state_and_ticks(stat: &Path) -> Option<(String, u64)> {
    let stat = fs::read_to_string(stat).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(((*fields.first()?).to_string(), number(11)? + number(12)?))
}
