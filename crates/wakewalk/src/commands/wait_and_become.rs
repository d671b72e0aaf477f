// SPDX-License-Identifier: Apache-2.0
//! How `diagnose -- COMMAND` starts its command: a copy of ourselves that waits for a byte on its
//! standard input and then becomes the command, so that the probes are there before its first step.

use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal, test_kill_process_group};

use crate::args;
use crate::cleanup::{Left, Listed};

/// Waits, then becomes the command; returns only if that fails. Who started it ends it when the time is up; if that one is killed
/// before, the kernel does.
pub fn run(args: &args::Await) -> Result<()> {
    let _ = set_parent_process_death_signal(Some(Signal::TERM)); // without it, the command outlives one that is killed
    let mut go = [0u8; 1];
    io::stdin().read_exact(&mut go).context("nobody said go")?;
    let (program, arguments) = args.command.split_first().context("no command")?;
    let error = Command::new(program).args(arguments).stdin(Stdio::null()).exec();
    Err(error).with_context(|| format!("failed to start `{program}`"))
}

/// Found out before the capture, not by a copy that fails in the middle of it.
fn can_be_run(program: &str) -> bool {
    let is_program = |path: &Path| fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if program.contains('/') {
        return is_program(Path::new(program));
    }
    env::var_os("PATH").is_some_and(|all| env::split_paths(&all).any(|dir| is_program(&dir.join(program))))
}

/// A command that waits to be let go. Dropping it ends it, and what it has started, but for what went into the background by itself.
pub struct Started {
    child: Child,
    command: String,
    /// Where we end in the middle.
    _listed: Option<Listed>,
}

impl Started {
    /// Starts the copy. The command's output goes to standard error, so that ours stays clean.
    pub fn new(command: &[String]) -> Result<Self> {
        let program = command.first().context("no command")?;
        if !can_be_run(program) {
            bail!("cannot start `{program}`: there is no such program, or it may not be run");
        }
        let child = Command::new("/proc/self/exe")
            .args(["await", "--"])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(io::stderr())
            // What a wrapper starts ends with it.
            .process_group(0)
            .spawn()
            .with_context(|| format!("failed to start `{}`", command.join(" ")))?;
        let listed = group(&child).map(|group| Listed::new(Left::Group(group)));
        Ok(Self { child, command: command.join(" "), _listed: listed })
    }

    /// Its process id, the same before and after it becomes the command.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The command line.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// File name of its program.
    pub fn name(&self) -> String {
        let program = self.command.split(' ').next().unwrap_or_default();
        program.rsplit('/').next().unwrap_or_default().to_string()
    }

    /// How it ended by itself, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Lets it become the command; later calls do nothing.
    pub fn go(&mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            let _ = stdin.write_all(b"."); // it has ended: the capture will say so
        }
    }
}

/// Its process group, which has its number.
fn group(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(pid) = group(&self.child) {
            let _ = kill_process_group(pid, Signal::TERM); // not reaped yet, so the number is still its own
        }
        for _ in 0..20 {
            let is_gone = self.child.try_wait().is_ok_and(|status| status.is_some());
            // What it has started may take longer than it: while there is any of that, the number of the group is its own.
            if is_gone && group(&self.child).is_none_or(|pid| test_kill_process_group(pid).is_err()) {
                return;
            }
            sleep(Duration::from_millis(100));
        }
        if let Some(pid) = group(&self.child) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
