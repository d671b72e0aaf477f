// SPDX-License-Identifier: Apache-2.0
//! Threads of the target wait for a disk.

use super::{Check, Checked, Explain, Rule, confidence, evidence, found, ruled_out};
use crate::case::Case;
use crate::facts::memory::Memory;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::{Waiting, called_from, links, too_little};
use crate::ledger::blocked::Blocked;
use crate::ledger::threads::Threads;
use crate::syscall::{Family, family};
use crate::verdict::{Explains, Finding, Gap, Subject};
use crate::walk::Kind;
use crate::walk::chains::Chain;
use crate::wording::{percent, seconds};

pub(super) static RULE: Rule = Rule {
    cause: "disk-wait",
    explain: Explain {
        means: "Threads of the target are blocked in reads, writes or fsync of files until a disk is done, for half or more \
                of the time in which the target is not idle.",
        recognised_by: "The ledger's line `blocked_disk`: waits in file calls that the kernel counts as I/O waits; and page \
                        faults that wait for a disk while memory is not short. The call and its file are named; who else \
                        writes stands in the resource table.",
        what_to_do: "Do it less often (batch the fsyncs), beside the request instead of in it, or on a faster or less busy \
                     disk.",
        look_alikes: "memory-pressure: page faults wait for the disk as well, because a memory limit is met. A pipe or \
                      terminal that nobody reads: blocked-writer.",
    },
    check: Check::Accuses(check),
};

const MIN_SHARE: f64 = 0.5;

/// Of the window, over all threads.
const MIN_TIME: f64 = 0.05;

fn check(case: &Case) -> Checked {
    let ledger = case.fact::<Threads>()?;
    let waiting = case.fact::<Waiting>()?;
    let memory = case.fact::<Memory>()?;
    // Pages of files that are read for the first time come from the disk too, without a call.
    let faults = if memory.shortage.is_none() { memory.fault_ns } else { 0.0 };
    let ns = ledger.total.blocked(Blocked::Disk) + faults;
    let part = waiting.share_of_exact(ns, ns);
    if let Some(why) = too_little(case, (ns, part), MIN_SHARE, MIN_TIME) {
        return ruled_out(format!("blocked on disks for {why}"));
    }
    let (chains, _) = waiting.of(is_file);
    let call = chains.first().map_or("file calls".to_string(), |c| c.links[0].who.call_words());
    let from = match chains.first() {
        Some(chain) => called_from(&*case.fact()?, &chain.links[0].who, &*case.fact()?),
        None => String::new(),
    };
    let headline = format!("waits for a disk {} of its time, in {call}", percent(part));
    let advice = match Use::of(chains.first()) {
        Use::Sync => "sync once for several requests, or on a faster disk",
        Use::Read => "keep what is read in memory, read less, or a faster disk",
        Use::Other => "do it less often, beside the request, or on a faster disk",
    };
    found(finding(case, &chains, &(call + &from), (ns, part))?, headline, advice)
}

/// What the disk is used for.
enum Use {
    Sync,
    Read,
    Other,
}

impl Use {
    fn of(chain: Option<&&Chain>) -> Self {
        match chain.map_or("", |chain| chain.links[0].who.call.as_str()) {
            "fsync" | "fdatasync" | "sync_file_range" | "msync" | "sync" | "syncfs" => Self::Sync,
            "none" => Self::Read,
            call if family(call) == Family::Receive => Self::Read,
            _ => Self::Other,
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Sync => {
                "Sync once for several requests, or after the answer where that is allowed; move other writers to another \
                 disk. Direct and buffered writes of others on the same file system make an fsync wait for theirs too."
            }
            Self::Read => {
                "What is read was not in the page cache: leave more memory for it, read less or ahead of time \
                 (posix_fadvise, readahead), or keep it in the program. Only the requests that read it are slow; a thread \
                 or queue of its own keeps them from the others."
            }
            Self::Other => "Do it beside the request or less often; move other users of the same disk to another one.",
        }
    }
}

fn is_file(chain: &Chain) -> bool {
    let who = &chain.links[0].who;
    matches!(who.fd_kind.as_str(), "file" | "block") || who.call == "none" && chain.end.kind == Kind::Disk
}

fn finding(case: &Case, chains: &[&Chain], call: &str, (ns, part): (f64, f64)) -> Result<Finding, Gap> {
    let stacks = case.fact::<Stacks>()?;
    let first = chains.first();
    let pid = first.map(|c| c.links[0].who.pid);
    let of_process = pid.map_or(String::new(), |pid| format!(" -p {pid}"));
    let trace = first.map_or("fsync,fdatasync,read,write,pread64,pwrite64", |c| &c.links[0].who.call);
    Ok(Finding {
        cause: RULE.cause.into(),
        confidence: confidence(case, 1 + usize::from(first.is_some())),
        summary: format!(
            "The target was blocked on a disk for {} of thread time, {} of the time in which it was not idle, mostly in {call}",
            seconds(ns / 1e9),
            percent(part)
        ),
        subject: Subject {
            pid,
            comm: first.map(|c| c.links[0].who.comm.clone()),
            syscall: first.map(|c| c.links[0].who.call.clone()),
            ..Subject::default()
        },
        explains: Explains { share: part, of: "the time in which it was not idle".into(), seconds: ns / 1e9 },
        evidence: vec![evidence(
            "blocked on disks",
            ns / 1e9,
            "s",
            "a small part of the time not idle",
            format!("strace -f -T -e trace={trace}{of_process}"),
        )],
        chain: first.map_or_else(Vec::new, |c| links(c, &stacks)),
        remedy: Use::of(first).remedy().into(),
        check: "After the change the ledger's line `blocked_disk` falls at the same load.".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    fn text(cpu: &str, disk: &str) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             frame id=1 symbol=blk_mq_end_request module=kernel kind=kernel
             stack id=1 frames=[1]
             thread pid=1 tid=1 comm=db wall_ns=1e9 cpu_ns={cpu} blocked_ns={disk}
             wait pid=1 tid=1 syscall=74 fd_kind=file state=2 io_wait=true count=9 total_ns={disk}
             wakeup t_ns=900e6 pid=1 tid=1 comm=db wait_ns=20e6 blocked_ns={disk} syscall=74 fd_kind=file state=2 context=interrupt waker_stack=1"
        )
    }

    #[test]
    fn a_database_that_syncs() {
        let finding = found(&RULE, &text("1e8", "9e8"));
        assert!(finding.summary.contains("mostly in fsync (file)"), "{}", finding.summary);
        assert_eq!(finding.confidence, "high");
    }

    #[test]
    fn one_that_computes_longer_than_it_syncs() {
        assert!(silent(&RULE, &text("12e8", "7e8")).contains("under 50 %"));
    }
}
