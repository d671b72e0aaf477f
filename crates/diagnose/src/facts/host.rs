//! The whole host: which processes lose most time, and the command that looks into each.
//!
//! Lost is time on a CPU, time runnable without one, throttled time, and time blocked on the disk
//! or on page faults. Other blocks are not counted: an idle server sits in them all day.

use std::collections::BTreeMap;

use recording::tables;

use crate::case::{Case, Fact};
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::Threads;
use crate::verdict::Gap;

/// One process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loser {
    /// Process id; 0 = short-lived ones of this name together.
    pub pid: u32,
    /// Command name.
    pub comm: String,
    /// On a CPU, ns.
    pub cpu_ns: f64,
    /// Runnable, not running, ns.
    pub waiting_for_cpu_ns: f64,
    /// Held by a quota, ns.
    pub throttled_ns: f64,
    /// Blocked on the disk or on page faults, ns.
    pub disk_ns: f64,
    /// The command that diagnoses it.
    pub command: String,
}

impl Loser {
    /// All of it.
    pub fn lost_ns(&self) -> f64 {
        self.cpu_ns + self.waiting_for_cpu_ns + self.throttled_ns + self.disk_ns
    }
}

/// Processes by lost time, most first.
pub struct HostRank {
    /// The processes; those that lost nothing are left out.
    pub processes: Vec<Loser>,
}

impl Fact for HostRank {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let threads = case.fact::<Threads>()?;
        let names: BTreeMap<u32, &str> =
            case.recording.rows::<tables::Process>().iter().map(|p| (p.pid, p.comm.as_str())).collect();
        let mut all: BTreeMap<(u32, String), Loser> = BTreeMap::new();
        for t in &threads.threads {
            // Threads of one process have names of their own; the process has one.
            let comm = if t.pid == 0 { t.comm.as_str() } else { names.get(&t.pid).copied().unwrap_or("") };
            let p = all.entry((t.pid, comm.to_string())).or_default();
            p.pid = t.pid;
            if p.comm.is_empty() || t.tid == t.pid {
                p.comm = if comm.is_empty() { t.comm.clone() } else { comm.to_string() };
            }
            p.cpu_ns += t.lines.cpu_ns;
            p.waiting_for_cpu_ns += t.lines.waiting_for_cpu_ns();
            p.throttled_ns += t.lines.throttled_ns;
            p.disk_ns += t.lines.blocked(Blocked::Disk) + t.lines.blocked(Blocked::PageFault);
        }
        let mut processes: Vec<Loser> = all.into_values().filter(|p| p.lost_ns() > 0.0).collect();
        processes.iter_mut().for_each(|p| p.command = command(p));
        processes.sort_by(|a, b| b.lost_ns().total_cmp(&a.lost_ns()).then(a.pid.cmp(&b.pid)));
        Ok(HostRank { processes })
    }
}

fn command(p: &Loser) -> String {
    if p.pid != 0 {
        return format!("sudo wakewalk diagnose --pid {}", p.pid);
    }
    format!("sudo wakewalk diagnose --comm '{}'", p.comm.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn ranked_by_lost_time_not_by_sleep() {
        let recording = parse(
            "meta host.arch=x86_64 kind=host
             process pid=5 comm=java
             thread pid=5 tid=5 comm=java wall_ns=100 blocked_ns=100
             thread pid=5 tid=6 comm=\"GC Thread\" wall_ns=100 cpu_ns=10 throttled_ns=5 blocked_ns=85
             thread pid=7 tid=7 comm=dd wall_ns=100 cpu_ns=5 blocked_ns=60
             thread comm=\"it's\" wall_ns=9 run_queue_ns=9
             thread pid=8 tid=8 comm=idle wall_ns=100 blocked_ns=100
             wait pid=7 tid=7 syscall=0 fd_kind=file state=2 io_wait=true total_ns=60",
        )
        .unwrap();
        let rank = Case::new(&recording).fact::<HostRank>().unwrap();
        let seen: Vec<(u32, &str, f64)> =
            rank.processes.iter().map(|p| (p.pid, p.comm.as_str(), p.lost_ns())).collect();
        assert_eq!(seen, [(7, "dd", 65.0), (5, "java", 15.0), (0, "it's", 9.0)]);
        assert_eq!(rank.processes[1].command, "sudo wakewalk diagnose --pid 5");
        assert_eq!(rank.processes[2].command, "sudo wakewalk diagnose --comm 'it'\\''s'");
    }
}
