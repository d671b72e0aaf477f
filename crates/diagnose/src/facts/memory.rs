// SPDX-License-Identifier: Apache-2.0
//! Time that the target lost to memory: waits for pages, and the search for free ones; and whether memory was short.

use recording::counters::{Key, cgroup_memory, pid, vmstat};
use recording::tables;

use super::counters::Counters;
use super::profile::Profile;
use super::stacks::Stacks;
use crate::answer::Gap;
use crate::case::{Case, Fact};
use crate::ledger::blocked::{self, Blocked, is_reclaim, symbols};
use crate::ledger::threads::Threads;
use crate::statistics::share;

/// Why memory was short.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage {
    /// The cgroup whose limit was met; none = the whole host had no room.
    pub cgroup: Option<String>,
    /// How often it was met in the window.
    pub times: f64,
}

/// What memory cost the target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Blocked in page faults until a page was there, ns.
    pub fault_ns: f64,
    /// Of that, where the kernel counted it as I/O: the page came from a disk, ns.
    pub fault_io_ns: f64,
    /// Of all of it, where the page had been swapped out, ns.
    pub fault_swap_ns: f64,
    /// Blocked while pages were freed, ns.
    pub reclaim_blocked_ns: f64,
    /// On a CPU, looking for pages to free, ns.
    pub reclaim_cpu_ns: f64,
    /// Major faults of the target's processes.
    pub major_faults: f64,
    /// The limits that were met: that of the cgroup which met it most, and that of the host.
    pub shortages: Vec<Shortage>,
}

impl Memory {
    /// All time lost, ns.
    pub fn lost_ns(&self) -> f64 {
        self.fault_ns + self.reclaim_blocked_ns + self.reclaim_cpu_ns
    }
}

impl Fact for Memory {
    fn compute(case: &Case) -> Result<Self, Gap> {
        let ledger = case.fact::<Threads>()?;
        let stacks = case.fact::<Stacks>()?;
        let mut memory = Memory::default();
        for row in case.recording.rows::<tables::Wait>() {
            let ns = row.total_ns as f64;
            match blocked::of_wait(case, &stacks, row) {
                Blocked::Memory => memory.reclaim_blocked_ns += ns,
                Blocked::PageFault => {
                    memory.fault_ns += ns;
                    memory.fault_io_ns += if row.io_wait { ns } else { 0.0 };
                    memory.fault_swap_ns += if is_swap(&symbols(&stacks, row.stack)) { ns } else { 0.0 };
                }
                _ => {}
            }
        }
        if let Ok(profile) = case.fact::<Profile>() {
            let reclaims = |stack: u32| is_reclaim(&symbols(&stacks, stack));
            let samples: u64 =
                profile.places.iter().filter(|(p, _)| p.kernel && reclaims(p.stack)).map(|(_, n)| n).sum();
            memory.reclaim_cpu_ns = ledger.total.cpu_ns * share(samples as f64, profile.total.samples as f64);
        }
        if let Ok(counters) = case.fact::<Counters>() {
            let faults = counters.entities(pid::SOURCE).filter_map(|process| counters.delta(pid::MAJFLT, process));
            memory.major_faults = faults.sum();
            memory.shortages = shortages(&counters, &memory);
        }
        Ok(memory)
    }
}

/// Whether a fault brings a page back from swap.
fn is_swap(symbols: &[&str]) -> bool {
    const SWAP: [&str; 5] = ["do_swap_page", "swapin", "swap_read", "swap_cluster_read", "swap_vma_read"];
    symbols.iter().any(|symbol| SWAP.iter().any(|part| symbol.contains(part)))
}

/// Of the major faults, pages that had been there before: with fewer, files are read for the first time.
const MOSTLY_AGAIN: f64 = 0.5;

/// The cgroup whose limit was met most; and the host, if it freed pages for somebody who waited, or swapped in what this target waited
/// for. What others get back, or have freed for themselves while this one reads new files, says nothing of this one's.
fn shortages(counters: &Counters, memory: &Memory) -> Vec<Shortage> {
    let met =
        |group: &str| counters.delta_sum(&[cgroup_memory::FAILCNT, cgroup_memory::OVER_HIGH], group).unwrap_or(0.0);
    let group =
        counters.entities(cgroup_memory::SOURCE).max_by(|a, b| met(a).total_cmp(&met(b))).filter(|g| met(g) > 0.0);
    let group = group.map(|group| Shortage { cgroup: Some(group.to_string()), times: met(group) });
    let (swaps, frees) = (memory.fault_swap_ns > 0.0, memory.reclaim_blocked_ns + memory.reclaim_cpu_ns > 0.0);
    let again = counters.delta(vmstat::REFAULTS, "");
    let is_hit = swaps || frees || again.is_none_or(|again| again >= memory.major_faults * MOSTLY_AGAIN);
    let of_host: &[Key] = if swaps { &[vmstat::ALLOCSTALL, vmstat::PSWPIN] } else { &[vmstat::ALLOCSTALL] };
    let times = counters.delta_sum(of_host, "").filter(|times| *times > 0.0 && is_hit);
    group.into_iter().chain(times.map(|times| Shortage { cgroup: None, times })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::text::parse;

    #[test]
    fn faults_reclaim_and_the_limit() {
        let recording = parse(
            "meta host.arch=x86_64 length_ns=1e9 target.sample_hz=100
             frame id=1 symbol=filemap_fault module=kernel kind=kernel
             frame id=2 symbol=exc_page_fault module=kernel kind=kernel
             frame id=3 symbol=shrink_node module=kernel kind=kernel
             frame id=4 symbol=rwsem_down_read_slowpath module=kernel kind=kernel
             stack id=1 frames=[1,2]
             stack id=2 frames=[3,2]
             stack id=3 frames=[4,2]
             thread pid=1 tid=1 wall_ns=1e9 cpu_ns=2e8 blocked_ns=8e8
             wait pid=1 tid=1 syscall=-1 state=2 stack=1 total_ns=3e8
             wait pid=1 tid=1 syscall=-1 state=2 stack=2 total_ns=2e8
             wait pid=1 tid=1 syscall=-1 state=2 stack=3 total_ns=1e8
             sample pid=1 tid=1 kernel=true stack=2 weight=5
             sample pid=1 tid=1 kernel=true stack=1 weight=15
             counter source=cgroup/memory entity=/a name=failcnt value=5
             counter t_ns=9 source=cgroup/memory entity=/a name=failcnt value=105
             counter source=proc/pid entity=\"1\" name=majflt value=1
             counter t_ns=9 source=proc/pid entity=\"1\" name=majflt value=51",
        )
        .unwrap();
        let memory = Case::new(&recording).fact::<Memory>().unwrap();
        assert_eq!((memory.fault_ns, memory.reclaim_blocked_ns, memory.reclaim_cpu_ns), (3e8, 2e8, 5e7));
        assert_eq!(memory.major_faults, 50.0);
        let told: Vec<_> = memory.shortages.iter().map(|s| (s.cgroup.as_deref(), s.times)).collect();
        assert_eq!(told, [(Some("/a"), 100.0)]);
    }

    /// A copy beside it has pages freed for itself, and the target reads files for the first time.
    #[test]
    fn others_that_free_pages() {
        let shortages = |again: u32, of_target: &str| {
            let text = format!(
                "meta host.arch=x86_64 length_ns=1e9
                 frame id=1 symbol={of_target} module=kernel kind=kernel
                 stack id=1 frames=[1]
                 thread pid=1 tid=1 wall_ns=1e9 blocked_ns=3e8
                 wait pid=1 tid=1 syscall=-1 state=2 stack=1 total_ns=3e8 io_wait=true
                 counter source=proc/vmstat name=allocstall value=0
                 counter t_ns=9 source=proc/vmstat name=allocstall value=90
                 counter source=proc/vmstat name=workingset_refault_file value=0
                 counter t_ns=9 source=proc/vmstat name=workingset_refault_file value={again}
                 counter source=proc/pid entity=\"1\" name=majflt value=0
                 counter t_ns=9 source=proc/pid entity=\"1\" name=majflt value=400"
            );
            Case::new(&parse(&text).unwrap()).fact::<Memory>().unwrap().shortages.len()
        };
        assert_eq!(shortages(10, "filemap_fault"), 0);
        assert_eq!(shortages(900, "filemap_fault"), 1, "what was taken away is read again");
        assert_eq!(shortages(10, "shrink_node"), 1, "the target frees pages itself");
    }

    #[test]
    fn a_host_with_room() {
        let times = |swapped: u32, stack: &str| {
            let text = format!(
                "meta host.arch=x86_64 length_ns=1e9
                 frame id=1 symbol={stack} module=kernel kind=kernel
                 frame id=2 symbol=exc_page_fault module=kernel kind=kernel
                 stack id=1 frames=[1,2]
                 thread pid=1 tid=1 wall_ns=1e9 blocked_ns=3e8
                 wait pid=1 tid=1 syscall=-1 state=2 stack=1 total_ns=3e8
                 counter source=proc/vmstat name=pswpin value=7
                 counter t_ns=9 source=proc/vmstat name=pswpin value={}",
                7 + swapped
            );
            Case::new(&parse(&text).unwrap()).fact::<Memory>().unwrap().shortages.first().map(|s| s.times)
        };
        assert_eq!((times(0, "do_swap_page"), times(900, "filemap_fault")), (None, None), "others' pages came back");
        assert_eq!(times(900, "do_swap_page"), Some(900.0));
    }
}
