// SPDX-License-Identifier: Apache-2.0
//! Waits for file systems that a program in user space or another host serves.

use std::collections::BTreeMap;

use recording::tables::{Wait, Wakeup};

use super::stacks::Stacks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::blocked::{Blocked, evidence_of_wait, of_wait, of_wakeup, symbols};
use crate::ledger::file_system::FileSystem;
use crate::walk::Walk;

/// Waits for one file system.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// What it is, and who serves it.
    pub system: FileSystem,
    /// Time, ns.
    pub ns: f64,
    /// Waits.
    pub count: u64,
}

/// All of them, those with most time first.
#[derive(Clone, Debug, Default)]
pub struct FileSystems {
    /// By file system.
    pub served: Vec<Served>,
    /// Who ended such waits, as `sshfs/812`, and for how much of their time, most first: the program that serves it.
    pub programs: Vec<(String, f64)>,
    /// Files that were waited for, by time, ns; those without a name left out.
    pub files: Vec<(String, f64)>,
}

impl Fact for FileSystems {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let stacks = case.fact::<Stacks>()?;
        let mut by_name: BTreeMap<&str, Served> = BTreeMap::new();
        for row in case.recording.rows::<Wait>().iter().filter(|r| of_wait(case, &stacks, r) == Blocked::FileSystem) {
            let (call, names) = (case.syscall(row.syscall), symbols(&stacks, row.stack));
            let Some(system) = evidence_of_wait(row, &call, &names).elsewhere() else { continue };
            let served = by_name.entry(system.name).or_insert(Served { system, ns: 0.0, count: 0 });
            served.ns += row.total_ns as f64;
            served.count = served.count.saturating_add(row.count);
        }
        let (mut programs, mut files) = (BTreeMap::<String, f64>::new(), BTreeMap::<String, f64>::new());
        let walk = case.fact::<Walk>();
        let of_target = |row: &&Wakeup| walk.as_ref().is_ok_and(|walk| walk.target.contains(&row.pid));
        for row in case.recording.rows::<Wakeup>().iter().filter(of_target) {
            if of_wakeup(case, &stacks, row) != Blocked::FileSystem {
                continue;
            }
            let ns = row.blocked_ns.max(row.wait_ns) as f64;
            if row.context == "thread" && row.waker_pid != row.pid {
                *programs.entry(format!("{}/{}", row.waker_comm, row.waker_pid)).or_default() += ns;
            }
            if !row.path.is_empty() {
                *files.entry(row.path.clone()).or_default() += ns;
            }
        }
        let mut served: Vec<Served> = by_name.into_values().collect();
        served.sort_by(|a, b| b.ns.total_cmp(&a.ns));
        Ok(Self { served, programs: by_time(programs), files: by_time(files) })
    }
}

fn by_time(sums: BTreeMap<String, f64>) -> Vec<(String, f64)> {
    let mut sums: Vec<(String, f64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn the_program_that_serves_is_named() {
        let recording = parse(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             thread pid=1 tid=1 wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
             wait pid=1 tid=1 syscall=17 fd_kind=file file_system=1702057286 state=1 count=9 total_ns=9e8
             wakeup t_ns=900e6 pid=1 tid=1 wait_ns=1e8 blocked_ns=9e8 syscall=17 fd_kind=file file_system=1702057286 state=1 path=/mnt/a context=thread waker_pid=7 waker_tid=7 waker_comm=sshfs",
        )
        .unwrap();
        let case = Case::new(&recording);
        let systems = case.fact::<FileSystems>().unwrap();
        assert_eq!((systems.served[0].system.name, systems.served[0].ns), ("fuse", 9e8));
        assert_eq!((systems.programs[0].0.as_str(), systems.files[0].0.as_str()), ("sshfs/7", "/mnt/a"));
        let none = parse("wait pid=1 tid=1 syscall=17 fd_kind=file file_system=61267 state=2 io_wait=true").unwrap();
        assert!(Case::new(&none).fact::<FileSystems>().unwrap().served.is_empty());
    }
}
