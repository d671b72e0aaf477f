// SPDX-License-Identifier: Apache-2.0
//! Threads of the target are blocked in writes that nobody takes.

use super::{Check, Checked, Rule, absent, evidence, explained, found, too_little};
use crate::answer::Gap;
use crate::case::Case;
use crate::facts::stacks::Stacks;
use crate::facts::waiting::Waiting;
use crate::judgement::enough::{little, not_for_requests};
use crate::judgement::limited::{Limit, cause as limited};
use crate::judgement::slow_start;
use crate::phrases::chain::{self, links};
use crate::verdict::{Explains, Finding, Subject};
use crate::walk::chains::Chain;
use crate::walk::clients::UNIX_PEER;
use crate::wording::{percent, seconds};

pub(super) static RULE: Rule =
    Rule { cause: "blocked-writer", explain: explain!("blocked-writer"), check: Check::Accuses(check) };

const MIN_SHARE: f64 = 0.5;

/// Of the window, over all threads.
const MIN_TIME: f64 = 0.05;

fn check(case: &Case) -> Checked {
    let waiting = case.fact::<Waiting>()?;
    let (chains, ns) = waiting.of(|chain| chain.links[0].who.writes());
    let Some(first) = chains.first() else {
        return absent("no write of the target had to wait for a reader on this host");
    };
    let part = waiting.share(ns);
    if let Some((seen, why)) = little(case, (ns, part), MIN_SHARE, MIN_TIME) {
        return too_little(seen, format!("blocked in writes for {why}"));
    }
    let who = &first.links[0].who;
    if let Some(cause) = known(case).filter(|_| who.fd_kind == "socket" && who.peer != UNIX_PEER) {
        return explained(format!(
            "it was blocked in writes to sockets, and what those wait for is known: see {cause}"
        ));
    }
    if let Some(why) = not_for_requests(case, &waiting, ns) {
        return explained(format!("it was blocked in writes for {why}"));
    }
    let headline = format!(
        "blocked in {} {} of its active time: {} reads too slowly",
        who.call_words(),
        percent(part),
        reader(first)
    );
    found(finding(case, &waiting, first, ns)?, headline, format!("look at {}, or write without waiting", reader(first)))
}

/// What writes to sockets wait for, where it has a name.
fn known(case: &Case) -> Option<&'static str> {
    let limits = [(Limit::PeersWindow, "receiver-limited"), (Limit::SendBuffer, "send-buffer-limited")];
    let limit = limits.into_iter().find(|(limit, _)| limited(case, *limit).is_some());
    limit.map(|(_, cause)| cause).or_else(|| slow_start::cause(case).map(|_| "slow-start"))
}

/// Who reads at the other end.
fn reader(chain: &Chain) -> String {
    chain::reader(chain, 0).unwrap_or_else(|| "the other end".to_string())
}

fn finding(case: &Case, waiting: &Waiting, first: &Chain, ns: f64) -> Result<Finding, Gap> {
    let stacks = case.fact::<Stacks>()?;
    let part = waiting.share(ns);
    let who = &first.links[0].who;
    Ok(Finding {
        summary: format!(
            "{} was blocked in {} for {} of thread time, {} of the target's active time, until {} had read",
            who.comm,
            who.call_words(),
            seconds(ns / 1e9),
            percent(part),
            reader(first)
        ),
        subject: Subject {
            pid: Some(who.pid),
            comm: Some(who.comm.clone()),
            syscall: Some(who.call.clone()),
            ..Subject::default()
        },
        explains: Explains { share: part, of: "active time".into(), seconds: ns / 1e9 },
        evidence: vec![
            evidence(
                "blocked in writes",
                ns / 1e9,
                "s",
                "0",
                format!("strace -f -T -e trace={} -p {}", who.call, who.pid),
            ),
            evidence("CPU demand", waiting.demand_ns / 1e9, "s", "most of active time", ""),
        ],
        chain: links(first, &stacks),
        remedy: format!(
            "{} is slower than what is written to it: make it faster, or write less. Where nothing may be lost and nobody \
             should wait, hand it to a thread and a buffer of its own.",
            reader(first)
        ),
        check: "After the change the wait in that write is gone from the chain.".into(),
        ..RULE.finding(case, 1)
    })
}

#[cfg(test)]
mod tests {
    use super::super::asking::{found, silent};
    use super::RULE;

    /// The reader is a process of the target's own, as a program for its log is.
    #[test]
    fn a_child_that_reads_too_slowly() {
        let child = text("pipe").replace("target.pids=[1]", "target.pids=[1,7]");
        assert!(found(&RULE, &child).summary.contains("until logger/7 had read"));
    }

    fn text(fd_kind: &str) -> String {
        format!(
            "meta host.arch=x86_64 length_ns=1e9 target.pids=[1]
             frame id=1 symbol=hrtimer_wakeup module=kernel kind=kernel
             stack id=1 frames=[1]
             thread pid=1 tid=1 comm=api wall_ns=1e9 cpu_ns=1e8 blocked_ns=9e8
             wakeup t_ns=900e6 pid=1 tid=1 comm=api wait_ns=20e6 blocked_ns=800e6 syscall=1 fd_kind={fd_kind} context=thread waker_pid=7 waker_tid=7 waker_comm=logger waker_syscall=0
             wakeup t_ns=899e6 since_ns=0 pid=7 tid=7 comm=logger wait_ns=19e6 blocked_ns=19e6 syscall=35 context=interrupt waker_stack=1"
        )
    }

    #[test]
    fn a_log_that_nobody_reads_in_time() {
        let finding = found(&RULE, &text("pipe"));
        assert!(finding.summary.contains("until logger/7 had read"), "{}", finding.summary);
    }

    /// A thread of its own for the log, which waits for the reader while requests are answered without it.
    #[test]
    fn a_log_that_no_request_waits_for() {
        let beside = |late: u32| {
            format!(
                "{}\nprocess pid=1 listen=[\"tcp 0.0.0.0:80\"]
                 connection t_ns=1e9 role=accepted port=80 looks=100 open=800 unanswered={late} late={late} late_ns={late}e7 segments=900",
                text("pipe")
            )
        };
        assert!(silent(&RULE, &beside(3)).contains("it was not for those"), "{}", silent(&RULE, &beside(3)));
        found(&RULE, &beside(300));
    }

    #[test]
    fn files_are_never_full() {
        assert!(silent(&RULE, &text("file")).contains("no write"));
    }
}
