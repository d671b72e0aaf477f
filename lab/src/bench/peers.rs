// SPDX-License-Identifier: Apache-2.0
//! The tools that wakewalk is put beside, each as its manual says it is used for the same question.
//! One that does not start here is shown with its own words.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cell::Cell;
use crate::stop::Stop;

/// How long a tool may take to write up what it saw; what it says is not used.
const END_LIMIT: Duration = Duration::from_secs(5);

/// One tool.
pub struct Peer {
    /// As in the table.
    pub name: &'static str,
    /// Its command without the target.
    command: &'static [&'static str],
    /// How it is told what to look at.
    target: Target,
    /// From its start until it is attached: bpftrace compiles first.
    settle: Duration,
    /// About how much slower a program that does nothing but system calls runs under it.
    pub slows: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Target {
    /// It watches everything.
    Everything,
    /// `-p PID`, or a program that it starts.
    Pid,
    /// `-p PID` only.
    RunningPid,
    /// It is started in the network namespace of the process.
    Namespace,
    /// A script in which `TARGET` stands for a condition on the process.
    Script(&'static str),
}

/// Off-CPU time by the stack that the thread left with: without kprobes the stack is only to be had there.
const OFF_CPU: &str = "tracepoint:sched:sched_switch /TARGET/ { @left[tid] = nsecs; @stack[tid] = kstack; } \
    tracepoint:sched:sched_switch /@left[args->next_pid]/ { \
    @off_us[@stack[args->next_pid]] = sum((nsecs - @left[args->next_pid]) / 1000); delete(@left[args->next_pid]); }";
const CALLS: &str = "tracepoint:raw_syscalls:sys_enter /TARGET/ { @calls[args->id] = count(); }";

/// From a read of a request to the write of its answer, which is what can be had without kprobes.
const ANSWERS: &str = "tracepoint:syscalls:sys_exit_recvfrom,tracepoint:syscalls:sys_exit_read \
    /TARGET && args->ret > 0/ { @read[tid] = nsecs; } \
    tracepoint:syscalls:sys_enter_writev,tracepoint:syscalls:sys_enter_write,tracepoint:syscalls:sys_enter_sendto \
    /@read[tid]/ { @us = hist((nsecs - @read[tid]) / 1000); delete(@read[tid]); }";

/// All of them.
pub static ALL: &[Peer] = &[
    Peer {
        name: "perf record -F 99 -g",
        command: &["perf", "record", "-F", "99", "-g", "-a", "-o", "perf.data"],
        target: Target::Everything,
        settle: Duration::from_millis(500),
        slows: 1,
    },
    Peer {
        name: "perf sched record",
        command: &["perf", "sched", "record", "-o", "perf.data"],
        target: Target::Everything,
        settle: Duration::from_millis(500),
        slows: 1,
    },
    Peer {
        name: "perf trace -s",
        command: &["perf", "trace", "-s", "-o", "perf.txt"],
        target: Target::Pid,
        settle: Duration::from_millis(1000),
        slows: 20,
    },
    Peer {
        name: "strace -c -f",
        command: &["strace", "-c", "-f", "-o", "strace.txt"],
        target: Target::Pid,
        settle: Duration::from_millis(500),
        slows: 20,
    },
    Peer {
        name: "offcputime of libbpf-tools",
        command: &["offcputime"],
        target: Target::RunningPid,
        settle: Duration::from_millis(1000),
        slows: 1,
    },
    Peer {
        name: "wakeuptime of libbpf-tools",
        command: &["wakeuptime"],
        target: Target::RunningPid,
        settle: Duration::from_millis(1000),
        slows: 1,
    },
    Peer {
        name: "bpftrace, off-CPU by stack",
        command: &["bpftrace", "-o", "bpftrace.txt", "-e"],
        target: Target::Script(OFF_CPU),
        settle: Duration::from_millis(1500),
        slows: 2,
    },
    Peer {
        name: "bpftrace, system call counts",
        command: &["bpftrace", "-o", "bpftrace.txt", "-e"],
        target: Target::Script(CALLS),
        settle: Duration::from_millis(1500),
        slows: 2,
    },
    Peer {
        name: "bpftrace, response times by system calls",
        command: &["bpftrace", "-o", "bpftrace.txt", "-e"],
        target: Target::Script(ANSWERS),
        settle: Duration::from_millis(1500),
        slows: 2,
    },
    Peer {
        name: "tcpdump, 96 bytes of each packet",
        command: &["tcpdump", "-Z", "root", "-i", "any", "-s", "96", "-w", "packets.pcap"],
        target: Target::Namespace,
        settle: Duration::from_millis(500),
        slows: 2,
    },
];

/// A tool at work.
pub struct Running {
    child: Child,
    said: PathBuf,
    stop: Stop,
}

impl Peer {
    /// Sets it on a running process and waits until it is attached.
    ///
    /// # Errors
    /// The runner was asked to end.
    pub fn watch(&self, cell: &Cell, pid: u32) -> Result<Running> {
        let mut args: Vec<OsString> = self.command.iter().map(Into::into).collect();
        match self.target {
            Target::Everything => {}
            Target::Namespace => {
                let into = ["nsenter", "-n", "-t", &pid.to_string()].map(OsString::from);
                args.splice(0..0, into);
            }
            Target::Pid | Target::RunningPid => args.extend(["-p".into(), pid.to_string().into()]),
            Target::Script(script) => args.push(script.replace("TARGET", &format!("pid == {pid}")).into()),
        }
        let running = self.start(cell, &args)?;
        cell.stop.sleep(self.settle)?;
        Ok(running)
    }

    /// Whether it can start the program that it watches.
    pub fn starts_programs(&self) -> bool {
        ![Target::RunningPid, Target::Namespace].contains(&self.target)
    }

    /// The command that runs `program`, known to the kernel as `comm`, under the tool.
    pub fn around(&self, program: &[OsString], comm: &str) -> Vec<OsString> {
        let mut args: Vec<OsString> = self.command.iter().map(Into::into).collect();
        if let Target::Script(script) = self.target {
            args.push(script.replace("TARGET", &format!("comm == \"{comm}\"")).into());
            let words: Vec<String> = program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            args.extend(["-c".into(), words.join(" ").into()]);
            return args;
        }
        args.push("--".into());
        args.extend_from_slice(program);
        args
    }

    fn start(&self, cell: &Cell, args: &[OsString]) -> Result<Running> {
        let said = cell.dir().join("peer.err");
        let mut command = Command::new(env::current_exe().context("failed to find the lab's own binary")?);
        command.arg("enter").arg("--group").arg(cell.group("observer")?.path()).arg("--").args(args);
        command.current_dir(cell.dir()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(File::create(&said)?);
        // A group of its own: Ctrl-C is for us, and perf ends its helpers by its group.
        let child = command.process_group(0).spawn().with_context(|| format!("failed to start {}", self.name))?;
        Ok(Running { child, said, stop: cell.stop.clone() })
    }
}

impl Running {
    /// Ends it as Ctrl-C would; if it was not there any more, returns its last words.
    pub fn end(mut self) -> Option<String> {
        if let Ok(Some(status)) = self.child.try_wait() {
            let said = fs::read_to_string(&self.said).unwrap_or_default();
            return Some(refusal(&said).unwrap_or_else(|| format!("ended by itself ({status})")));
        }
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT);
        let child = &mut self.child;
        let _ = self.stop.poll(END_LIMIT, || Ok(child.try_wait()?.is_some()));
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a tool said when it did not start: its last line with words in it.
pub fn refusal(said: &str) -> Option<String> {
    let words = |line: &&str| line.chars().any(char::is_alphanumeric);
    said.lines().rev().map(str::trim).find(words).map(|line| line.chars().take(160).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_can_be_put_around_a_program() {
        let program: Vec<OsString> = ["perf", "bench", "sched", "pipe"].map(Into::into).into();
        for peer in ALL.iter().filter(|peer| peer.starts_programs()) {
            let args = peer.around(&program, "perf");
            let line: Vec<String> = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
            assert!(line.join(" ").ends_with("perf bench sched pipe"), "{line:?}");
            assert!(!line.join(" ").contains("TARGET"), "{line:?}");
        }
    }

    #[test]
    fn a_refusal_is_the_last_line() {
        assert_eq!(refusal("a\nError: no kprobes\n~~~~\n").as_deref(), Some("Error: no kprobes"));
        assert_eq!(refusal(""), None);
    }
}
