// SPDX-License-Identifier: Apache-2.0
//! The last steps of a program on its way into a cell: join the cgroup, stay on the CPUs, die with
//! the runner; then become the program. A step of our own between fork and exec, because these have
//! to happen before the program's first instruction and cannot be done from outside without a race.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, Command};

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// Becomes `command`; returns only if that failed.
///
/// # Errors
/// A step was refused, or there is no such program.
pub fn enter(groups: &[PathBuf], cpus: &[usize], command: &[OsString]) -> Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL).context("failed to tie the program to the runner")?;
    for group in groups {
        fs::write(group.join("cgroup.procs"), process::id().to_string())
            .with_context(|| format!("failed to join cgroup `{}`", group.display()))?;
    }
    if !cpus.is_empty() {
        let mut set = CpuSet::new();
        for &cpu in cpus {
            set.set(cpu).with_context(|| format!("failed to name CPU {cpu}"))?;
        }
        sched_setaffinity(Pid::from_raw(0), &set).with_context(|| format!("failed to stay on CPUs {cpus:?}"))?;
    }
    let (program, args) = command.split_first().context("no program was named")?;
    let error = Command::new(program).args(args).exec();
    Err(error).with_context(|| format!("failed to start `{}`", program.to_string_lossy()))
}
