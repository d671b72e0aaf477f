// SPDX-License-Identifier: Apache-2.0
//! A few answers take much longer than the others, most of what clients wait is theirs, and nothing that was measured holds them.

use super::super::Statement;
use crate::case::Case;
use crate::facts::labels::Labels;
use crate::facts::requests::Requests;
use crate::judgement::full::is_at_capacity;
use crate::judgement::paths::{SEVERAL, telling};
use crate::judgement::tail;
use crate::remarks::{hidden_queues, response_times};
use crate::walk::Kind;
use crate::walk::paths::{Group, Meanwhile, What};
use crate::wording::percent;

/// Of the time of slow requests: with less of it unseen, what was seen is why.
const MOSTLY: f64 = 0.5;

/// Of the time that all clients wait: with less, slow ones are a part of it among others.
const MOST_WAIT_FOR_THEM: f64 = 0.5;

/// The statement about them.
pub(super) fn check(case: &Case) -> Option<Statement> {
    let requests = case.fact::<Requests>().ok()?;
    let main = requests.main()?;
    tail::of(main).filter(|slow| slow.part >= MOST_WAIT_FOR_THEM && !tail::is_one_moment(&requests, main))?;
    let paths = telling(case)?;
    let unseen = Some(&paths.main()?.tail).filter(|group| group.requests >= SEVERAL).map(unseen)?;
    let said = response_times::tail(case).filter(|_| unseen >= MOSTLY && !is_at_capacity(case))?;
    let hidden = hidden_queues::look(case);
    // What is asked is the first thing that they may have in common.
    let again = if case.fact::<Labels>().is_ok() { "" } else { " (with --requests, what they ask is told)" };
    Some(Statement {
        headline: format!("{}, and what those wait for is not seen", said.headline),
        advice: format!("find out what they have in common{again}; to look inside: {}", hidden.look),
        detail: format!(
            "{} {} of the time of slow requests is inside the process, where the kernel sees nothing: {}. Answers that are long by \
             design, as long polls are, look the same. (With under {} of all that clients wait in slow answers, or most of \
             their time at something that is seen, the verdict would be healthy.)",
            said.detail,
            percent(unseen),
            hidden.what,
            percent(MOST_WAIT_FOR_THEM),
        ),
    })
}

/// The share of the time of requests in which nothing was seen that they waited for.
fn unseen(group: &Group) -> f64 {
    group.share(|part| match &part.what {
        What::Inside { meanwhile, .. } => *meanwhile == Meanwhile::Unknown,
        What::Awake { kind, .. } => *kind == Kind::Unseen,
        What::Waits(chain) => chain.end.kind == Kind::Unseen,
        What::Asking { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::super::super::asking::stated;

    /// Quick requests, and 8 that take 300 ms: their thread either waits for a disk or serves others.
    fn said(disk: bool) -> Option<String> {
        let mut text = "meta host.arch=x86_64 length_ns=5e9 target.pids=[1] target.listen=[\"tcp 0.0.0.0:80\"]
            process pid=1 listen=[\"tcp 0.0.0.0:80\"]
            thread t_ns=5e9 pid=1 tid=1 comm=loop wall_ns=5e9 cpu_ns=1e8 blocked_ns=49e8
            burst t_ns=5e9 length_ns=5e9
            exchange_window t_ns=5e9 length_ns=5e9
            frame id=2 symbol=net_rx_action module=kernel kind=kernel
            stack id=2 frames=[2]
            exchange role=accepted port=80 stage=response count=408 sum_ns=248e7 length_ns=[200000,300000000] counts=[400,8]\n"
            .to_string();
        text += "\n";
        for at in 0..60_u64 {
            let ms = 10 + at * 70;
            let _ = writeln!(
                text,
                "request t_ns={}e5 role=accepted port=80 pid=1 began_ns={ms}e6 began_tid=1 read_ns={ms}e6 ended_tid=1",
                ms * 10 + 2
            );
        }
        for at in 0..8_u64 {
            let (from, to) = (100 + at * 560, 400 + at * 560);
            let _ = writeln!(
                text,
                "request t_ns={to}e6 role=accepted port=80 pid=1 began_ns={from}e6 began_tid=1 read_ns={from}e6 ended_tid=1"
            );
            let call = if disk {
                "syscall=0 in_iowait=1 context=interrupt"
            } else {
                "syscall=232 family=2 local_port=80 remote_port=9 context=interrupt waker_stack=2"
            };
            let _ = writeln!(
                text,
                "wakeup t_ns={}e6 pid=1 tid=1 comm=loop since_ns={from}e6 wait_ns=298e6 blocked_ns=298e6 waits=1 {call}",
                to - 1
            );
        }
        stated(&super::super::RULE, &text, &[]).map(|said| said.headline)
    }

    #[test]
    fn slow_ones_that_nothing_seen_holds() {
        let said = said(false).unwrap();
        assert!(said.contains("take 10 ms or longer") && said.ends_with("what those wait for is not seen"), "{said}");
    }

    #[test]
    fn slow_ones_that_wait_for_what_is_seen() {
        let said = said(true).unwrap();
        assert!(said.starts_with("slow requests wait") && said.contains("no rule has a cause"), "{said}");
    }
}
