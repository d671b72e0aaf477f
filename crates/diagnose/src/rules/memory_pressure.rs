// SPDX-License-Identifier: Apache-2.0
//! Memory is short: threads wait for pages that were taken away, or look for some to free.

use super::{Check, Checked, Rule, evidence, explained, found, too_little};
use crate::case::Case;
use crate::facts::memory::{Memory, Shortage};
use crate::facts::waiting::Waiting;
use crate::judgement::enough::{little, not_for_requests};
use crate::judgement::short_memory;
use crate::verdict::{Explains, Finding, Subject};
use crate::wording::{count, percent, seconds, word};

pub(super) static RULE: Rule =
    Rule { cause: "memory-pressure", explain: explain!("memory-pressure"), check: Check::Accuses(check) };

/// A third of active time: with room for its pages a service loses next to nothing.
const MIN_SHARE: f64 = 0.33;

/// Of the window, over all threads.
const MIN_TIME: f64 = 0.05;

fn check(case: &Case) -> Checked {
    let memory = case.fact::<Memory>()?;
    let waiting = case.fact::<Waiting>()?;
    let lost = memory.lost_ns();
    let part = waiting.share_of_exact(lost, lost - memory.reclaim_cpu_ns);
    if let Some((seen, why)) = little(case, (lost, part), MIN_SHARE, MIN_TIME) {
        return too_little(seen, format!("waiting for pages and freeing them took {why}"));
    }
    let Some(shortage) = short_memory::shortage(&memory) else {
        return explained(format!(
            "page faults waited for {}, but no memory limit was met more often than by chance and the host had free memory: files \
             read for the first time",
            seconds(lost / 1e9)
        ));
    };
    let for_none = || not_for_requests(case, &waiting, lost - memory.reclaim_cpu_ns).filter(|_| waiting.serves);
    if let Some(why) = for_none() {
        return explained(format!("page faults and freeing pages took {why}"));
    }
    let headline = format!("loses {} of its active time to want of memory: {} is met", percent(part), whose(shortage));
    found(finding(case, &memory, shortage, (lost, part)), headline, "raise that limit, or let it use less memory")
}

fn finding(case: &Case, memory: &Memory, shortage: &Shortage, (lost, part): (f64, f64)) -> Finding {
    let pid = case.recording.meta.target.pids.first().copied();
    let see = format!("grep -i pgmajfault /proc/vmstat; ps -o maj_flt,rss,comm -p {}", pid.unwrap_or(0));
    Finding {
        summary: format!(
            "The target lost {}, {} of its active time, to page faults ({}) and to freeing pages ({}); \
             {} was met {} times",
            seconds(lost / 1e9),
            percent(part),
            seconds(memory.fault_ns / 1e9),
            seconds((memory.reclaim_blocked_ns + memory.reclaim_cpu_ns) / 1e9),
            whose(shortage),
            count(shortage.times)
        ),
        subject: Subject { pid, comm: Some(case.recording.meta.target.comm.clone()), ..Subject::default() },
        explains: Explains { share: part, of: "active time".into(), seconds: lost / 1e9 },
        evidence: vec![
            evidence("blocked until a page was there", memory.fault_ns / 1e9, "s", "near 0", see),
            evidence("blocked while pages were freed", memory.reclaim_blocked_ns / 1e9, "s", "0", ""),
            evidence("on a CPU, freeing pages", memory.reclaim_cpu_ns / 1e9, "s", "0", ""),
            evidence("major faults", memory.major_faults, "faults", "few", ""),
            evidence(&format!("{} was met", whose(shortage)), shortage.times, "times", "0", counted_in(shortage)),
        ],
        remedy: format!(
            "Raise {}, or make the target smaller: caches, heap, number of processes. What it uses all the time has to fit; \
             a faster disk only hides part of it.",
            whose(shortage)
        ),
        check: "Major faults and the ledger's line `blocked_page_fault` fall to near 0 at the same load.".into(),
        ..RULE.finding(case, 2)
    }
}

/// What was short.
fn whose(shortage: &Shortage) -> String {
    match &shortage.cgroup {
        Some(group) => format!("the memory limit of cgroup {group}"),
        None => "the host's memory".into(),
    }
}

/// A command that shows how often.
fn counted_in(shortage: &Shortage) -> String {
    match &shortage.cgroup {
        Some(group) => format!("cat /sys/fs/cgroup{{,/memory}}{}/memory.{{events,failcnt}} 2>/dev/null", word(group)),
        None => "grep -E 'allocstall|pswpin' /proc/vmstat".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    fn text(fault: &str, failures: u32) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1] target.comm=index
             wakeup
             thread pid=1 tid=1 wall_ns=1e9 cpu_ns=2e8 blocked_ns=8e8
             wait pid=1 tid=1 syscall=-1 state=2 io_wait=true total_ns={fault}
             counter source=cgroup/memory entity=/svc name=failcnt value=0
             counter t_ns=9 source=cgroup/memory entity=/svc name=failcnt value={failures}"
        )
    }

    #[test]
    fn a_limit_below_what_is_used() {
        let finding = found(&RULE, &text("6e8", 900));
        assert!(finding.summary.contains("the memory limit of cgroup /svc was met 900 times"), "{}", finding.summary);
    }

    /// A merge in the background, of a service whose answers take little time of that; and what requests wait for.
    #[test]
    fn what_no_request_waits_for() {
        let serves = |in_hand: u32| {
            format!(
                "{}\nprocess pid=1 listen=[\"tcp 0.0.0.0:80\"]
                 wakeup t_ns=1e8 pid=1 tid=2 wait_ns=1e6 blocked_ns=1e6 syscall=0 family=2 local_port=80 remote_port=9 context=interrupt
                 connection t_ns=1e9 role=accepted port=80 looks=100 open=400 unanswered={in_hand}
                 exchange_window t_ns=1e9 length_ns=1e9
                 exchange role=accepted port=80 stage=response count=50 sum_ns={}e7 length_ns=[2000000] counts=[50]",
                text("6e8", 900).replace("target.comm=index", "target.comm=index target.listen=[\"tcp 0.0.0.0:80\"]"),
                in_hand
            )
        };
        assert!(silent(&RULE, &serves(2)).contains("it was not for those"));
        found(&RULE, &serves(80));
    }

    #[test]
    fn cold_files_and_few_faults() {
        assert!(silent(&RULE, &text("6e8", 0)).contains("for the first time"));
        assert!(silent(&RULE, &text("6e8", 3)).contains("for the first time"), "by chance");
        assert!(silent(&RULE, &text("1e7", 900)).contains("(under 33 %)"));
    }
}
