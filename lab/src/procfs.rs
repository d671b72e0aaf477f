// SPDX-License-Identifier: Apache-2.0
//! The few numbers of /proc that the lab reads: CPU time of processes and of the host, in ticks of
//! 10 ms (USER_HZ is 100 on every Linux that matters here).

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Ticks of /proc a second.
pub const TICKS_PER_SECOND: f64 = 100.0;
/// PF_KTHREAD of include/linux/sched.h: the process is a kernel thread.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// One process by `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Process {
    /// Kernel threads work for others.
    pub kernel_thread: bool,
    /// User and system time, ticks.
    pub ticks: u64,
    /// The same of its children that have ended and were waited for, ticks.
    pub children_ticks: u64,
    /// Start, to tell a new process with an old number.
    pub started: u64,
}

impl Process {
    /// CPU time of the process and of what it started and waited for, as a shell does, ticks.
    pub fn all_ticks(&self) -> u64 {
        self.ticks + self.children_ticks
    }
}

/// CPU time of the host by `/proc/stat`, ticks over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Host {
    /// User, nice and system time.
    pub busy: u64,
    /// Time that the hypervisor gave to others.
    pub steal: u64,
}

/// One process; none where it has gone.
pub fn process(pid: u32) -> Option<Process> {
    parse_process(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// All processes.
///
/// # Errors
/// There is no /proc.
pub fn processes() -> Result<HashMap<u32, Process>> {
    let entries = fs::read_dir(Path::new("/proc")).context("failed to read /proc")?;
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    Ok(pids.filter_map(|pid| Some((pid, process(pid)?))).collect())
}

/// The host's CPU time.
///
/// # Errors
/// There is no /proc.
pub fn host() -> Result<Host> {
    let text = fs::read_to_string("/proc/stat").context("failed to read /proc/stat")?;
    parse_host(&text).context("/proc/stat has no line of all CPUs")
}

fn parse_process(stat: &str) -> Option<Process> {
    // The name in parentheses may hold blanks and parentheses.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let field = |number: usize| fields.get(number - 3)?.trim().parse::<u64>().ok(); // as proc(5) counts
    Some(Process {
        kernel_thread: field(9)? & KERNEL_THREAD != 0,
        ticks: field(14)? + field(15)?,
        children_ticks: field(16)? + field(17)?,
        started: field(22)?,
    })
}

fn parse_host(stat: &str) -> Option<Host> {
    let line = stat.lines().find(|l| l.starts_with("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    Some(Host { busy: ticks.get(..3)?.iter().sum(), steal: ticks.get(7).copied().unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_whose_name_has_blanks_and_parentheses() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 2097152 0 0 0 0 5 6 1 2 20 0 1 0 4242 0 0";
        assert_eq!(
            parse_process(stat),
            Some(Process { kernel_thread: true, ticks: 11, children_ticks: 3, started: 4242 })
        );
    }

    #[test]
    fn the_host_with_and_without_steal() {
        let with = "cpu  10 1 5 100 3 0 2 7 0 0\ncpu0 1 1 1 1";
        assert_eq!(parse_host(with), Some(Host { busy: 16, steal: 7 }));
        assert_eq!(parse_host("cpu  10 1 5 100"), Some(Host { busy: 16, steal: 0 }));
        assert_eq!(parse_host("intr 5"), None);
    }
}
