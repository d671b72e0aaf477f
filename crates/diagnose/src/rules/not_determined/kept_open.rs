// SPDX-License-Identifier: Apache-2.0
//! Workers with one thread each that wait for the next request in connections which clients keep open, while others wait to be taken.

use std::collections::BTreeMap;

use super::super::Statement;
use crate::answer::Gap;
use crate::case::Case;
use crate::facts::connections::Connections;
use crate::ledger::threads::Threads;

/// Of the processes, so many: one of them may be the one that starts the others.
const NEARLY_ALL: f64 = 0.8;

/// The statement about them; `gap` says that connections stand in the accept queue.
pub(super) fn check(case: &Case, gap: &Gap) -> Option<Statement> {
    let kept = case.fact::<Connections>().ok()?.accepted.kept;
    let mut processes: BTreeMap<u32, usize> = BTreeMap::new();
    let ledger = case.fact::<Threads>().ok()?;
    ledger.threads.iter().filter(|thread| thread.tid != 0).for_each(|t| *processes.entry(t.pid).or_default() += 1);
    // Where a process has several threads, others than these may be those that accept.
    let one_thread_each = processes.values().all(|threads| *threads == 1);
    let others = processes.len().saturating_sub(1).max(1) as f64;
    (one_thread_each && kept >= 1.0 && kept >= others * NEARLY_ALL).then(|| Statement {
        headline: format!(
            "connections stand in the accept queue, while {} on clients that keep theirs open",
            if kept < 1.5 { "the worker waits".to_string() } else { format!("{kept:.0} workers wait") }
        ),
        advice: "close connections sooner when nothing is asked on them (keep-alive timeout), or serve them by a loop".into(),
        detail: format!(
            "{}. In {kept:.1} accepted connections a worker stood in a read, or in a poll of that one alone, with nothing to read: \
             each of them serves one client at a time, and none of the others until that one asks again or goes.",
            gap.why
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::asking::stated;
    use super::super::RULE;
    use crate::answer::{Gap, Unseen};

    fn said(kept: u32, threads: u32) -> String {
        let mut text = format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1,2,3] target.listen=[\"tcp 0.0.0.0:80\"]
             connection t_ns=1e9 role=accepted port=80 looks=10 open=40 queued=80 kept={kept}\n"
        );
        for pid in 1..=3 {
            for tid in 0..threads {
                text +=
                    &format!("thread t_ns=1e9 pid={pid} tid={} wall_ns=1e9 cpu_ns=0 blocked_ns=1e9\n", pid * 10 + tid);
            }
        }
        let gap = Gap::new("pool-exhausted", Unseen::Undecided, "8.0 connections stood in the accept queue");
        stated(&RULE, &text, &[gap]).unwrap().headline
    }

    #[test]
    fn workers_that_clients_keep() {
        assert!(said(20, 1).ends_with("while 2 workers wait on clients that keep theirs open"), "{}", said(20, 1));
        assert!(!said(10, 1).contains("keep theirs open"), "one of two is free");
        assert!(!said(20, 2).contains("keep theirs open"), "others may be those that accept");
    }
}
